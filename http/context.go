package http

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"flagledger/projections/snapshot"
)

// question is what an evaluation is asked, and reads it token by token: by reflection that costs several times as much. Its memory is used
// again, so it is not to be touched once it is released.
type question struct {
	snapshot.Context
	environment string
	flagKeys    []string // nil asks for all

	body    bytes.Buffer
	data    []byte // the whole of body
	limit   io.LimitedReader
	members map[string]any // memory for the attributes
	decoder jsontext.Decoder
}

// maxKept is the largest body and answer whose memory is kept for the next request, maxKeptMembers the most attributes.
const (
	maxKept        = 1 << 20
	maxKeptMembers = 64
)

var questions = sync.Pool{New: func() any { return &question{members: map[string]any{}} }}

// readBody reads a request's body, for a caller who releases the question.
func readBody(r *http.Request) (*question, *problem) {
	q := questions.Get().(*question)
	q.limit = io.LimitedReader{R: r.Body, N: maxBody}
	_, err := q.body.ReadFrom(&q.limit)
	q.data = q.body.Bytes()
	var unread string
	switch {
	case err != nil:
		unread = "the body cannot be read"
	case len(q.data) == maxBody:
		unread = "the body is larger than 1 MiB"
	case len(q.data) == 0:
		unread = "request body is required"
	default:
		return q, nil
	}
	q.release()
	return nil, newProblem(http.StatusBadRequest, unread)
}

func (q *question) release() {
	if cap(q.data) > maxKept || len(q.members) > maxKeptMembers {
		return
	}
	clear(q.members)
	q.Context, q.environment, q.flagKeys, q.data, q.limit.R = snapshot.Context{}, "", nil, nil, nil
	q.body.Reset()
	questions.Put(q)
}

// decode reads the body with a function that reads one value. Its errors are those of readJSON.
func (q *question) decode(read func(*question) error) error {
	if err := checkText(q.data); err != nil {
		return err
	}
	q.decoder.Reset(&q.body)
	err := read(q)
	if err == nil {
		if _, err = q.decoder.ReadToken(); err == io.EOF { //nolint:errorlint // as the decoder documents it
			return nil
		}
		if err == nil {
			err = errors.New("malformed JSON: there is something after its end")
		}
	}
	return malformed(err)
}

// object reads an object. member is called at the value of each of its members, and reads that.
func (q *question) object(member func(name string) error) error {
	if q.decoder.PeekKind() != '{' {
		return q.misfit()
	}
	if _, err := q.decoder.ReadToken(); err != nil {
		return err
	}
	for {
		name, err := q.decoder.ReadToken()
		if err != nil {
			return err
		}
		if name.Kind() == '}' {
			return nil
		}
		if err := member(name.String()); err != nil {
			return err
		}
	}
}

// array reads an array. element is called at each of its elements, and reads that.
func (q *question) array(element func() error) error {
	if q.decoder.PeekKind() != '[' {
		return q.misfit()
	}
	if _, err := q.decoder.ReadToken(); err != nil {
		return err
	}
	for q.decoder.PeekKind() != ']' {
		if err := element(); err != nil {
			return err
		}
	}
	_, err := q.decoder.ReadToken()
	return err
}

// text reads a string; null stands for none.
func (q *question) text(to *string) error {
	switch q.decoder.PeekKind() {
	case '"':
		token, err := q.decoder.ReadToken()
		if err == nil {
			*to = token.String()
		}
		return err
	case 'n':
		*to = ""
		return q.decoder.SkipValue()
	default:
		return q.misfit()
	}
}

// texts reads a list of strings; null stands for none.
func (q *question) texts(to *[]string) error {
	if q.decoder.PeekKind() == 'n' {
		*to = nil
		return q.decoder.SkipValue()
	}
	*to = []string{}
	return q.array(func() error {
		if q.decoder.PeekKind() != '"' {
			return q.misfit()
		}
		token, err := q.decoder.ReadToken()
		*to = append(*to, token.String())
		return err
	})
}

// attributes reads the attributes of a context; null stands for none.
func (q *question) attributes() error {
	if q.decoder.PeekKind() == 'n' {
		return q.decoder.SkipValue()
	}
	q.Attributes = q.members
	return q.into(q.members)
}

// into reads the members of an object.
func (q *question) into(members map[string]any) error {
	return q.object(func(name string) (err error) {
		members[name], err = q.value()
		return err
	})
}

// value reads any value as snapshot.Context holds it.
func (q *question) value() (any, error) {
	switch q.decoder.PeekKind() {
	case '{':
		object := map[string]any{}
		return object, q.into(object)
	case '[':
		list := []any{}
		err := q.array(func() error {
			element, err := q.value()
			list = append(list, element)
			return err
		})
		return list, err
	case '0':
		number, err := q.decoder.ReadValue()
		if err != nil {
			return nil, err
		}
		return snapshot.ParseNumber(number), nil
	default:
		token, err := q.decoder.ReadToken()
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

// misfit is the error of a value of another type than is asked for, unless the JSON is malformed.
func (q *question) misfit() error {
	err := q.decoder.SkipValue()
	if err != nil {
		return err
	}
	return q.refuse("is not of the right type")
}

// refuse is an error about the value that was read last.
func (q *question) refuse(text string) error {
	name := field(q.decoder.StackPointer())
	if name == "" {
		name = "body"
	}
	return fieldError{name, text}
}
