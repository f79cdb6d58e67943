FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 make build

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /src/bin/flagledger /flagledger
EXPOSE 8080
ENTRYPOINT ["/flagledger"]
