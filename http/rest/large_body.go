package rest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"flagledger/events"
	"flagledger/http/quota"
)

// pieceTimeout limits the time for each LargeBody bytes of a large body. A body that has held its slot for longer
// yields to others.
const pieceTimeout = 3 * time.Second

// MayBeLarge reports whether the body of a request may be larger than LargeBody.
func MayBeLarge(r *http.Request) bool { return r.ContentLength < 0 || r.ContentLength > LargeBody }

// ReadBody reads a body of at most maxBody. Beyond LargeBody bytes it waits for a slot, and each piece must then arrive
// within pieceTimeout. It returns the slot, or nil for a small body. Its error is a problem.
func (a *Core) ReadBody(r *http.Request, p *Principal, into *bytes.Buffer) (slot *quota.Slot, err error) {
	return a.readBody(r, p, into, maxBody)
}

func (a *Core) readBody(r *http.Request, p *Principal, into *bytes.Buffer, limit int) (slot *quota.Slot, err error) {
	into.Grow(LargeBody + 1 + bytes.MinRead)
	if _, err := into.ReadFrom(&io.LimitedReader{R: r.Body, N: LargeBody + 1}); err != nil {
		return nil, NewProblem(http.StatusBadRequest, UnreadBody)
	}
	if into.Len() <= LargeBody {
		return nil, nil
	}
	if slot, err = a.EnterQueue(r.Context(), a.Queues.Memory, p); err != nil {
		return nil, err
	}
	if err := readRest(r, into, limit, slot); err != nil {
		slot.Leave()
		return nil, err
	}
	return slot, nil
}

// readRest reads the rest of a large body of at most limit bytes.
func readRest(r *http.Request, into *bytes.Buffer, limit int, slot *quota.Slot) error {
	control, began := http.NewResponseController(&RequestOf(r.Context()).writer), time.Now()
	for {
		now := time.Now()
		end := now.Add(pieceTimeout)
		if last := began.Add(ReadTimeout); end.After(last) {
			end = last
		}
		_ = control.SetReadDeadline(end)
		_, err := io.CopyN(into, r.Body, int64(min(LargeBody, limit+1-into.Len())))
		switch {
		case errors.Is(err, io.EOF):
			// the body may have ended with the previous piece; the server then removed its deadline
			_ = control.SetReadDeadline(time.Time{})
			return nil
		case err != nil && !time.Now().Before(end):
			return NewProblem(
				http.StatusBadRequest,
				fmt.Sprintf("the body arrives too slowly: each further %s must arrive within %s",
					events.SizeText(LargeBody), events.PeriodText(pieceTimeout)),
			)
		case err != nil:
			return NewProblem(http.StatusBadRequest, UnreadBody)
		case into.Len() > limit:
			return NewProblem(http.StatusBadRequest, bodyTooLarge(limit))
		case time.Since(began) > pieceTimeout && slot.Yield():
			return NewProblem(http.StatusServiceUnavailable,
				"the body arrived slowly while other large ones waited; the request was not carried out")
		}
	}
}
