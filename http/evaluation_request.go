package http

import (
	"bytes"
	"context"
	"net/http"
	"sync"

	"flagledger/http/fair"
	"flagledger/http/strictjson"
	"flagledger/projections/snapshot"
)

// evaluationRequest is the body of an evaluation, read token by token, since reflection costs several times as much.
// Its memory is reused: nothing of it may be used after release.
type evaluationRequest struct {
	snapshot.Context
	environment string
	flagKeys    []string // nil asks for all

	strictjson.Reader
	body    bytes.Buffer
	data    []byte         // the whole of body
	members map[string]any // memory for the attributes

	bodySlot *fair.Slot // of a large body; nil for others
	workSlot *fair.Slot // of costly work; nil for others
}

// maxKept is the largest body and answer whose memory is kept for the next request, maxKeptMembers the most attributes.
const (
	maxKept        = 1 << 20
	maxKeptMembers = 64
)

var evaluationRequests = sync.Pool{New: func() any { return &evaluationRequest{members: map[string]any{}} }}

// readEvaluationBody reads a request's body, and waits for a slot where that is large. The caller decodes and releases
// it. Its error is a problem.
func (a *API) readEvaluationBody(r *http.Request, p *principal) (*evaluationRequest, error) {
	e := evaluationRequests.Get().(*evaluationRequest)
	err := a.fill(e, r, p)
	if err == nil && len(e.data) == 0 {
		err = newProblem(http.StatusBadRequest, missingBody)
	}
	if err == nil && e.bodySlot != nil {
		err = a.takeWorkSlot(r.Context(), e, p)
	}
	if err != nil {
		e.release()
		return nil, err
	}
	return e, nil
}

// fill reads the bytes of a body.
func (a *API) fill(e *evaluationRequest, r *http.Request, p *principal) (err error) {
	if mayBeLarge(r) {
		e.bodySlot, err = a.readBody(r, p, &e.body)
	} else if _, unread := e.body.ReadFrom(r.Body); unread != nil {
		err = newProblem(http.StatusBadRequest, unreadBody)
	}
	e.data = e.body.Bytes()
	return err
}

// takeWorkSlot waits for a slot to do costly work for an evaluation, or for the one that was left. Its error is a
// problem, or that of ctx.
func (a *API) takeWorkSlot(ctx context.Context, e *evaluationRequest, p *principal) (err error) {
	if e.workSlot != nil {
		return e.workSlot.Resume(ctx)
	}
	if e.workSlot, err = a.enterQueue(ctx, a.queues.evaluations, p); err != nil {
		return err
	}
	return a.limitUnread(ctx)
}

// leaveWorkSlot gives the slot back while the evaluation waits for something else than a processor.
func (e *evaluationRequest) leaveWorkSlot() {
	if e.workSlot != nil {
		e.workSlot.Leave()
	}
}

func (e *evaluationRequest) release() {
	e.leaveWorkSlot()
	if e.bodySlot != nil {
		e.bodySlot.Leave()
	}
	e.bodySlot, e.workSlot = nil, nil
	if cap(e.data) > maxKept || len(e.members) > maxKeptMembers {
		return
	}
	clear(e.members)
	e.Context, e.environment, e.flagKeys, e.data = snapshot.Context{}, "", nil, nil
	e.body.Reset()
	evaluationRequests.Put(e)
}

// decode reads the body with a function that reads one value. Its errors are those of strictjson.Read.
func (e *evaluationRequest) decode(read func(*evaluationRequest) error) error {
	if err := e.Begin(&e.body); err != nil {
		return err
	}
	return e.End(read(e))
}

// attributes reads the attributes of a context; null is read as none.
func (e *evaluationRequest) attributes() error {
	if e.PeekKind() == 'n' {
		return e.SkipValue()
	}
	e.Attributes = e.members
	return e.into(e.members)
}

// into reads the members of an object.
func (e *evaluationRequest) into(members map[string]any) error {
	return e.Object(func(name string) (err error) {
		members[name], err = e.value()
		return err
	})
}

// value reads any value as snapshot.Context holds it.
func (e *evaluationRequest) value() (any, error) {
	switch e.PeekKind() {
	case '{':
		object := map[string]any{}
		return object, e.into(object)
	case '[':
		list := []any{}
		err := e.Array(func() error {
			element, err := e.value()
			list = append(list, element)
			return err
		})
		return list, err
	case '0':
		number, err := e.ReadValue()
		if err != nil {
			return nil, err
		}
		return snapshot.ParseNumber(number), nil
	default:
		token, err := e.ReadToken()
		if err != nil {
			return nil, err
		}
		switch token.Kind() {
		case '"':
			return token.String(), nil
		case 't', 'f':
			return token.Bool(), nil
		default:
			return nil, nil
		}
	}
}
