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

// contextReader reads the bodies of evaluations token by token: by reflection they cost several times as much. Its memory is used again by
// other requests: what it reads holds until it is released.
type contextReader struct {
	body  bytes.Buffer
	limit io.LimitedReader
	jsontext.Decoder
}

// maxKept is the largest body whose memory is kept for the next request.
const maxKept = 64 << 10

var contextReaders = sync.Pool{New: func() any { return &contextReader{} }}

// readBody reads a request's body, for a caller who releases the reader.
func readBody(r *http.Request) (*contextReader, *problem) {
	c := contextReaders.Get().(*contextReader)
	c.limit = io.LimitedReader{R: r.Body, N: maxBody}
	_, err := c.body.ReadFrom(&c.limit)
	var unread string
	switch {
	case err != nil:
		unread = "the body cannot be read"
	case c.body.Len() == maxBody:
		unread = "the body is larger than 1 MiB"
	case c.body.Len() == 0:
		unread = "request body is required"
	default:
		return c, nil
	}
	c.release()
	return nil, newProblem(http.StatusBadRequest, unread)
}

func (c *contextReader) release() {
	c.limit.R = nil
	if c.body.Reset(); c.body.Cap() <= maxKept {
		contextReaders.Put(c)
	}
}

// decode reads the body with a function that reads one value. Its errors are those of readJSON.
func (c *contextReader) decode(read func() error) error {
	data := c.body.Bytes()
	if err := checkText(data); err != nil {
		return err
	}
	c.Reset(bytes.NewBuffer(data))
	err := read()
	if err == nil {
		if _, err = c.ReadToken(); err == io.EOF { //nolint:errorlint // as the decoder documents it
			return nil
		}
		if err == nil {
			err = errors.New("malformed JSON: there is something behind its end")
		}
	}
	return malformed(err)
}

// object reads an object. member is called at the value of each of its members, and reads that.
func (c *contextReader) object(member func(name string) error) error {
	if c.PeekKind() != '{' {
		return c.misfit()
	}
	if _, err := c.ReadToken(); err != nil {
		return err
	}
	for {
		name, err := c.ReadToken()
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
func (c *contextReader) array(element func() error) error {
	if c.PeekKind() != '[' {
		return c.misfit()
	}
	if _, err := c.ReadToken(); err != nil {
		return err
	}
	for c.PeekKind() != ']' {
		if err := element(); err != nil {
			return err
		}
	}
	_, err := c.ReadToken()
	return err
}

// text reads a string; null stands for none.
func (c *contextReader) text(to *string) error {
	switch c.PeekKind() {
	case '"':
		token, err := c.ReadToken()
		if err == nil {
			*to = token.String()
		}
		return err
	case 'n':
		*to = ""
		return c.SkipValue()
	default:
		return c.misfit()
	}
}

// texts reads a list of strings; null stands for none.
func (c *contextReader) texts(to *[]string) error {
	if c.PeekKind() == 'n' {
		*to = nil
		return c.SkipValue()
	}
	*to = []string{}
	return c.array(func() error {
		if c.PeekKind() != '"' {
			return c.misfit()
		}
		token, err := c.ReadToken()
		*to = append(*to, token.String())
		return err
	})
}

// attributes reads the attributes of a context; null stands for none.
func (c *contextReader) attributes(to *map[string]any) error {
	if c.PeekKind() == 'n' {
		*to = nil
		return c.SkipValue()
	}
	*to = map[string]any{}
	return c.object(func(name string) (err error) {
		(*to)[name], err = c.value()
		return err
	})
}

// value reads any value as snapshot.Context holds it.
func (c *contextReader) value() (any, error) {
	switch c.PeekKind() {
	case '{':
		var object map[string]any
		err := c.attributes(&object)
		return object, err
	case '[':
		list := []any{}
		err := c.array(func() error {
			element, err := c.value()
			list = append(list, element)
			return err
		})
		return list, err
	case '0':
		number, err := c.ReadValue()
		if err != nil {
			return nil, err
		}
		return snapshot.ParseNumber(number), nil
	default:
		token, err := c.ReadToken()
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
func (c *contextReader) misfit() error {
	err := c.SkipValue()
	if err != nil {
		return err
	}
	return c.refuse("is not of the right type")
}

// refuse is an error about the value that was read last.
func (c *contextReader) refuse(text string) error {
	name := field(c.StackPointer())
	if name == "" {
		name = "body"
	}
	return fieldError{name, text}
}
