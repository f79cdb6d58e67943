package snapshot

import (
	"encoding/binary"
	"encoding/json"
	"time"
	"unique"
)

// coder writes fields to data, or reads them from it: for each type by one function, so that both agree. While it
// writes, it changes only data, since what it writes is shared with readers.
type coder struct {
	data   []byte // written so far, or still to be read
	saving bool
	bad    bool // what was read is not what a coder wrote
}

func (c *coder) fail() { c.data, c.bad = nil, true }

// take reads n bytes, nil where there are not as many.
func (c *coder) take(n uint64) []byte {
	if n > uint64(len(c.data)) {
		c.fail()
		return nil
	}
	taken := c.data[:n:n]
	c.data = c.data[n:]
	return taken
}

type integer interface {
	~int | ~int32 | ~int64 | ~uint8 | ~uint32 | ~uint64
}

func codeNumber[N integer](c *coder, v *N) {
	if c.saving {
		c.data = binary.AppendVarint(c.data, int64(*v))
		return
	}
	n, size := binary.Varint(c.data)
	if size <= 0 || int64(N(n)) != n {
		c.fail()
		return
	}
	*v, c.data = N(n), c.data[size:]
}

func (c *coder) boolean(v *bool) {
	var n uint8
	if *v {
		n = 1
	}
	codeNumber(c, &n)
	if !c.saving {
		*v = n != 0
	}
}

// codeText copies what it reads.
func codeText[S ~string](c *coder, v *S) {
	n := uint64(len(*v))
	codeNumber(c, &n)
	if c.saving {
		c.data = append(c.data, *v...)
		return
	}
	*v = S(c.take(n))
}

func codeBytes[B ~[]byte](c *coder, v *B) {
	s := string(*v)
	codeText(c, &s)
	if !c.saving {
		*v = nil
		if s != "" {
			*v = B(s)
		}
	}
}

func codeHandle(c *coder, v *unique.Handle[string]) {
	var s string
	if c.saving {
		s = v.Value()
	}
	codeText(c, &s)
	if !c.saving {
		*v = unique.Make(s)
	}
}

// instant keeps nanoseconds, and reads times in UTC.
func (c *coder) instant(v *time.Time) {
	seconds, nanoseconds := v.Unix(), int64(v.Nanosecond())
	codeNumber(c, &seconds)
	codeNumber(c, &nanoseconds)
	if !c.saving {
		*v = time.Unix(seconds, nanoseconds).UTC()
	}
}

// codeList reads an empty list as nil.
func codeList[T any](c *coder, v *[]T, each func(*T)) {
	n := uint64(len(*v))
	codeNumber(c, &n)
	if c.saving {
		for _, element := range *v { // a copy
			each(&element)
		}
		return
	}
	*v = nil
	if n > uint64(len(c.data)) { // each has a byte at least
		c.fail()
	}
	if n == 0 || c.bad {
		return
	}
	*v = make([]T, n)
	for i := range *v {
		each(&(*v)[i])
	}
}

func codeTexts[S ~string](c *coder, v *[]S) { codeList(c, v, func(s *S) { codeText(c, s) }) }

// codeJSON codes a value as JSON. It is for what is rare, and may get further fields.
func codeJSON[T any](c *coder, v *T) {
	var encoded []byte
	if c.saving {
		encoded, _ = json.Marshal(*v) // facts, which were read from JSON
	}
	codeBytes(c, &encoded)
	if !c.saving && json.Unmarshal(encoded, v) != nil {
		c.fail()
	}
}
