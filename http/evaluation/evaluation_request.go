package evaluation

import (
	"bytes"
	"context"
	"net/http"
	"sync"

	"flagledger/http/quota"
	"flagledger/http/rest"
	"flagledger/http/strictjson"
	"flagledger/projections/snapshot/evaluation"
)

// evaluationRequest is the body of an evaluation, read token by token because reflection is several times slower. Its
// memory is reused, so it must not be used after release.
type evaluationRequest struct {
	evaluation.Context
	environment string
	flagKeys    []string // nil for all

	strictjson.Reader
	body    bytes.Buffer
	data    []byte         // the whole of body
	members map[string]any // memory for the attributes

	bodySlot *quota.Slot // for a large body, or nil
	workSlot *quota.Slot // for expensive work, or nil
}

// maxReused is the largest body or response, in bytes, whose memory is reused for another request. maxReusedMembers is
// the same for attributes.
const (
	maxReused        = 1 << 20
	maxReusedMembers = 64
)

var evaluationRequests = sync.Pool{New: func() any { return &evaluationRequest{members: map[string]any{}} }}

// readEvaluationBody reads a request's body. If it is large, it waits for slots. The caller decodes and releases the
// body. Its error is a problem.
func (a *API) readEvaluationBody(r *http.Request, p *rest.Principal) (*evaluationRequest, error) {
	e := evaluationRequests.Get().(*evaluationRequest)
	err := a.fill(e, r, p)
	if err == nil && len(e.data) == 0 {
		err = rest.NewProblem(http.StatusBadRequest, rest.MissingBody)
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
func (a *API) fill(e *evaluationRequest, r *http.Request, p *rest.Principal) (err error) {
	if rest.MayBeLarge(r) {
		e.bodySlot, err = a.ReadBody(r, p, &e.body)
	} else if _, unread := e.body.ReadFrom(r.Body); unread != nil {
		err = rest.NewProblem(http.StatusBadRequest, rest.UnreadBody)
	}
	e.data = e.body.Bytes()
	return err
}

// takeWorkSlot waits for a slot for the evaluation's expensive work, or resumes the one it released. Its error is a
// problem, or ctx's error.
func (a *API) takeWorkSlot(ctx context.Context, e *evaluationRequest, p *rest.Principal) (err error) {
	if e.workSlot != nil {
		return e.workSlot.Resume(ctx)
	}
	if e.workSlot, err = a.EnterQueue(ctx, a.Queues.CPU, p); err != nil {
		return err
	}
	return a.LimitUnread(ctx)
}

// leaveWorkSlot releases the slot while the evaluation waits for I/O.
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
	if cap(e.data) > maxReused || len(e.members) > maxReusedMembers {
		return
	}
	clear(e.members)
	e.Reset()
	e.environment, e.flagKeys, e.data = "", nil, nil
	e.body.Reset()
	evaluationRequests.Put(e)
}

// decode reads the body with a function that reads one value. It returns the errors of strictjson.Read.
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
	return e.readMembers(e.members)
}

// readMembers reads the members of an object.
func (e *evaluationRequest) readMembers(members map[string]any) error {
	return e.Object(func(name string) (err error) {
		members[name], err = e.value()
		return err
	})
}

// value reads any JSON value in the types of snapshot.Context.
func (e *evaluationRequest) value() (any, error) {
	switch e.PeekKind() {
	case '{':
		object := map[string]any{}
		return object, e.readMembers(object)
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
		return evaluation.ParseNumber(number), nil
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
