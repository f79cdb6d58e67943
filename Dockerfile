FROM node:20-bookworm-slim AS node

FROM golang:1.26-bookworm AS build
COPY --from=node /usr/local /usr/local/node
ENV PATH=$PATH:/usr/local/node/bin
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 make build && mkdir /data

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /src/bin/flagledger /flagledger
COPY --from=build --chown=nonroot:nonroot /data /data
ENV FLAGLEDGER_DATA=/data
EXPOSE 8080
ENTRYPOINT ["/flagledger"]
