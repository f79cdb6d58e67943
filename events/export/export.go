// Package export writes and reads files of facts without an event store, as lines of JSON: the Header, each fact in
// log order, and the number of facts with the SHA-256 of all lines before. A file without the last line was cut off.
// Facts are as stored, except for white space between JSON tokens.
package export

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"os"
	"time"

	"github.com/google/uuid"

	"flagledger/events"
)

// Header is the first line of a file.
type Header struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	Log     string `json:"log"`              // the ID of the facts' log
	Tenant  string `json:"tenant,omitempty"` // the facts' tenant; empty for the whole log
	// Key verifies the checkpoints that the service signs; empty if there are none.
	Key string `json:"key,omitempty"`
}

// String describes the facts of the file.
func (h Header) String() string {
	of := "all facts"
	if h.Tenant != "" {
		of = "the facts of the tenant " + h.Tenant
	}
	if h.Key == "" {
		return fmt.Sprintf("%s in the log %s, without an audit key", of, h.Log)
	}
	return fmt.Sprintf("%s in the log %s, with the audit key %s", of, h.Log, h.Key)
}

const (
	format  = "flagledger facts"
	version = 1
)

// NewHeader returns the header of the current format.
func NewHeader(logID, tenantID, key string) Header {
	return Header{format, version, logID, tenantID, key}
}

// line is a fact in a file.
type line struct {
	Stream   string          `json:"stream"`
	Revision events.Revision `json:"revision"`
	ID       uuid.UUID       `json:"id"`
	Name     string          `json:"name"`
	Version  int             `json:"version"`
	Recorded string          `json:"recorded"`
	Metadata json.RawMessage `json:"metadata"`
	Data     json.RawMessage `json:"data"`
}

// end is the last line of a file.
type end struct {
	Facts  int    `json:"facts"`
	SHA256 string `json:"sha256"`
}

var (
	endPrefix = []byte(`{"facts":`)

	// errCutOff reports that a file has no last line.
	errCutOff = errors.New("it was cut off: the last line is missing")
	// ErrComplete reports that an export is complete, so Resume cannot continue it.
	ErrComplete = errors.New("it holds a whole export")
)

// Writer writes a file. It is not safe for concurrent use.
type Writer struct {
	out   *bufio.Writer
	sum   hash.Hash
	facts int
}

// NewWriter begins a file.
func NewWriter(out io.Writer, h Header) (*Writer, error) {
	w := &Writer{bufio.NewWriterSize(out, 1<<16), sha256.New(), 0}
	return w, w.write(h)
}

// Resume continues a file that was cut off, or begins an empty one. It calls visit with the facts in the file. A file
// without a key continues without one, because its first line stays. It returns ErrComplete if nothing is missing.
func Resume(file *os.File, h Header, visit func(events.Recorded)) (*Writer, error) {
	r, err := NewReader(file)
	if errors.Is(err, errCutOff) {
		return restart(file, h)
	}
	if err != nil {
		return nil, err
	}
	if r.Header.Key == "" {
		h.Key = ""
	}
	if r.Header != h {
		return nil, fmt.Errorf("it contains %v, and would continue with %v: name another file", r.Header, h)
	}
	for {
		e, err := r.Next()
		switch {
		case errors.Is(err, errCutOff):
			return &Writer{bufio.NewWriterSize(file, 1<<16), r.sum, r.facts}, truncateTo(file, r.size)
		case errors.Is(err, io.EOF):
			return nil, ErrComplete
		case err != nil:
			return nil, err
		}
		visit(e)
	}
}

// restart begins a file that is empty or was cut off in its first line. It refuses other files.
func restart(file *os.File, h Header) (*Writer, error) {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	begun, err := io.ReadAll(io.LimitReader(file, maxLine))
	if err != nil {
		return nil, err
	}
	withoutKey := h
	withoutKey.Key = ""
	own := false
	for _, h := range []Header{h, withoutKey} {
		first, err := events.Marshal(h)
		if err != nil {
			return nil, err
		}
		own = own || bytes.HasPrefix(first, begun)
	}
	if !own {
		return nil, errors.New("it is not an export that was cut off: name another file")
	}
	if err := truncateTo(file, 0); err != nil {
		return nil, err
	}
	return NewWriter(file, h)
}

// truncateTo removes everything after a file's first bytes.
func truncateTo(file *os.File, size int64) error {
	if err := file.Truncate(size); err != nil {
		return err
	}
	_, err := file.Seek(size, io.SeekStart)
	return err
}

// Add writes a fact.
func (w *Writer) Add(e events.Recorded) error {
	metadata, err := events.CanonicalMetadata(e)
	if err != nil {
		return err
	}
	err = w.write(
		line{
			e.Stream,
			e.Revision,
			e.ID,
			e.Name,
			e.Stored.Version,
			e.At.UTC().Format(events.RecordedFormat),
			metadata,
			e.Stored.Data,
		},
	)
	if err != nil {
		return fmt.Errorf("%s@%d: %w", e.Stream, e.Revision, err)
	}
	w.facts++
	return nil
}

// Facts returns how many facts the file has.
func (w *Writer) Facts() int { return w.facts }

// Flush writes what is buffered.
func (w *Writer) Flush() error { return w.out.Flush() }

// End writes the last line and what is buffered, and returns the SHA-256 in hexadecimal digits.
func (w *Writer) End() (sum string, err error) {
	sum = hex.EncodeToString(w.sum.Sum(nil))
	return sum, errors.Join(w.write(end{w.facts, sum}), w.out.Flush())
}

func (w *Writer) write(v any) error {
	b, err := events.Marshal(v)
	if err != nil {
		return err
	}
	b = append(b, '\n')
	_, _ = w.sum.Write(b)
	_, err = w.out.Write(b)
	return err
}

// maxLine is more than the line of a fact of events.MaxEventBytes.
const maxLine = 2 * events.MaxEventBytes

// Reader reads a file, and checks it. It is not safe for concurrent use.
type Reader struct {
	Header Header
	in     *bufio.Reader
	sum    hash.Hash // of the complete lines
	lines  int
	facts  int
	size   int64 // of the complete lines
}

// NewReader reads the header of a file. It returns an error if the file has no complete line.
func NewReader(in io.Reader) (*Reader, error) {
	r := &Reader{in: bufio.NewReaderSize(in, maxLine), sum: sha256.New()}
	first, err := r.line()
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(first, &r.Header); err != nil || r.Header.Format != format {
		return nil, errors.New("it is not a file of facts: the first line is not a header")
	}
	if r.Header.Version != version {
		return nil, fmt.Errorf("it has version %d of the format; this program knows %d", r.Header.Version, version)
	}
	if err := asWritten(first, r.Header); err != nil {
		return nil, fmt.Errorf("line 1: %w", err)
	}
	r.count(first)
	return r, nil
}

// All yields the facts as Next returns them, and ends after the first error but io.EOF.
func (r *Reader) All() iter.Seq2[events.Recorded, error] {
	return func(yield func(events.Recorded, error) bool) {
		for {
			e, err := r.Next()
			if errors.Is(err, io.EOF) || !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Facts returns how many facts were read.
func (r *Reader) Facts() int { return r.facts }

// Line returns the number of the last line read, from 1.
func (r *Reader) Line() int { return r.lines }

// line reads the next line with its end. count adds it to the lines before the last.
func (r *Reader) line() ([]byte, error) {
	b, err := r.in.ReadSlice('\n')
	switch {
	case errors.Is(err, io.EOF):
		return nil, errCutOff
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, fmt.Errorf("line %d is longer than %d bytes", r.lines+1, maxLine)
	case err != nil:
		return nil, err
	}
	r.lines++
	return b, nil
}

func (r *Reader) count(line []byte) {
	_, _ = r.sum.Write(line)
	r.size += int64(len(line))
}

// Next returns the next fact, ready for an append: its Fact is its stored form, without a position. It returns io.EOF
// after the last fact of a complete and undamaged file, and a different error if the last line is missing.
func (r *Reader) Next() (events.Recorded, error) {
	b, err := r.line()
	if err != nil {
		return events.Recorded{}, err
	}
	if bytes.HasPrefix(b, endPrefix) {
		return events.Recorded{}, r.end(b)
	}
	e, err := parse(b)
	if err != nil {
		return events.Recorded{}, fmt.Errorf("line %d: %w", r.lines, err)
	}
	r.count(b)
	r.facts++
	return e, nil
}

func parse(b []byte) (e events.Recorded, err error) {
	var l line
	if err := json.Unmarshal(b, &l); err != nil {
		return e, err
	}
	if err := asWritten(b, l); err != nil {
		return e, err
	}
	at, err := time.Parse(events.RecordedFormat, l.Recorded)
	if err != nil {
		return e, fmt.Errorf("recorded: %w", err)
	}
	// Parse accepts a comma and hours of one digit.
	if at.Format(events.RecordedFormat) != l.Recorded || at.Before(time.Unix(0, 0)) {
		return e, fmt.Errorf("recorded: %q is not as an export writes a time since 1970", l.Recorded)
	}
	stored := events.Stored{ID: l.ID, Name: l.Name, Version: l.Version, Data: l.Data, Metadata: l.Metadata, At: at}
	e = events.Recorded{
		Event:    events.Event{ID: l.ID, Fact: stored},
		Stream:   l.Stream,
		Revision: l.Revision,
		At:       at,
		Name:     l.Name,
		Stored:   stored,
	}
	if err := json.Unmarshal(l.Metadata, &e.Metadata); err != nil {
		return e, fmt.Errorf("metadata: %w", err)
	}
	switch {
	case !events.KnownStream(l.Stream):
		return e, fmt.Errorf("stream: %q is of no known kind", l.Stream)
	case l.Revision == 0 || l.ID == uuid.Nil || l.Name == "" || l.Version < 1 || len(l.Data) == 0:
		return e, errors.New("a fact needs a revision, id, name, version and data")
	}
	return e, events.CheckMetadata(e)
}

// asWritten requires that a line is exactly what this package would write for its value. encoding/json ignores the
// case of members, takes the last of repeated ones and drops unknown ones, so a reader might see something different
// from what is hashed.
func asWritten(b []byte, v any) error {
	written, err := events.Marshal(v)
	if err == nil && !bytes.Equal(bytes.TrimSuffix(b, []byte("\n")), written) {
		err = errors.New(
			"it is not as an export writes it: a member is unknown, repeated, or differs in name, place or spelling",
		)
	}
	return err
}

// end checks the last line, and that no line follows.
func (r *Reader) end(b []byte) error {
	var last end
	if err := json.Unmarshal(b, &last); err != nil {
		return fmt.Errorf("line %d: %w", r.lines, err)
	}
	if err := asWritten(b, last); err != nil {
		return fmt.Errorf("line %d: %w", r.lines, err)
	}
	if sum := hex.EncodeToString(r.sum.Sum(nil)); last.SHA256 != sum {
		return fmt.Errorf("it is damaged: the SHA-256 of its lines is %s, and the last line says %s", sum, last.SHA256)
	}
	if last.Facts != r.facts {
		return fmt.Errorf("it is damaged: it has %d facts, and the last line says %d", r.facts, last.Facts)
	}
	if _, err := r.in.ReadByte(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("it continues after line %d, which is its last", r.lines)
	}
	return io.EOF
}
