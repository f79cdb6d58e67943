package http

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"flagledger/events"
	"flagledger/http/fair"
)

// pieceTimeout is the longest that each further largeBody bytes of a large body may take. A body that has held its
// place for longer makes way for others.
const pieceTimeout = 3 * time.Second

// mayBeLarge reports whether the body of a request may be larger than largeBody.
func mayBeLarge(r *http.Request) bool { return r.ContentLength < 0 || r.ContentLength > largeBody }

// readBody reads a body of at most 1 MiB. Once more than largeBody of it has come, it waits for a slot to hold a large
// body in memory, and the sender must not be slow from then on. It returns the slot, nil for a small body. Its error is
// a problem.
func (a *API) readBody(r *http.Request, p *principal, into *bytes.Buffer) (slot *fair.Slot, err error) {
	into.Grow(largeBody + 1 + bytes.MinRead)
	if _, err := into.ReadFrom(&io.LimitedReader{R: r.Body, N: largeBody + 1}); err != nil {
		return nil, newProblem(http.StatusBadRequest, unreadBody)
	}
	if into.Len() <= largeBody {
		return nil, nil
	}
	if slot, err = a.enterQueue(r.Context(), a.queues.bodies, p); err != nil {
		return nil, err
	}
	if err := readRest(r, into, slot); err != nil {
		slot.Leave()
		return nil, err
	}
	return slot, nil
}

// readRest reads what is left of a large body.
func readRest(r *http.Request, into *bytes.Buffer, slot *fair.Slot) error {
	control, began := http.NewResponseController(&requestOf(r.Context()).writer), time.Now()
	for {
		now := time.Now()
		end := now.Add(pieceTimeout)
		if last := began.Add(readTimeout); end.After(last) {
			end = last
		}
		_ = control.SetReadDeadline(end)
		_, err := io.CopyN(into, r.Body, int64(min(largeBody, maxBody-into.Len())))
		switch {
		case errors.Is(err, io.EOF):
			// the body may have ended with the piece before, when the server lifted that one's
			_ = control.SetReadDeadline(time.Time{})
			return nil
		case err != nil && !time.Now().Before(end):
			return newProblem(
				http.StatusBadRequest,
				fmt.Sprintf("the body comes too slowly: each further %s must come within %s",
					events.SizeText(largeBody), events.PeriodText(pieceTimeout)),
			)
		case err != nil:
			return newProblem(http.StatusBadRequest, unreadBody)
		case into.Len() == maxBody:
			return newProblem(http.StatusBadRequest, bodyTooLarge)
		case time.Since(began) > pieceTimeout && slot.GiveWay():
			return newProblem(http.StatusServiceUnavailable,
				"the body came slowly while other large ones waited; it has not been carried out")
		}
	}
}
