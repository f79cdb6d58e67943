package commands

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Once identifies a request that may be made again because its answer was lost. All ids that come of it are derived
// from it: made again, the request finds its own facts instead of adding them once more.
type Once struct {
	seed  uuid.UUID
	began time.Time
	first time.Time // until when nobody else can carry the request out, who was the first to do so

	mu   sync.Mutex
	used map[string]int // how often each purpose has been served
}

// requests is the namespace of the seeds.
var requests = uuid.MustParse("6c6b2c9e-0c1b-5f0d-8a41-6f0f8b0d9a35")

// NewOnce identifies a request by what is the same each time that it is made, and by the time, to the millisecond, at
// which it was first made.
func NewOnce(identity []byte, began time.Time) *Once {
	data := binary.BigEndian.AppendUint64(nil, uint64(began.UnixMilli()))
	return &Once{seed: uuid.NewSHA1(requests, append(data, identity...)), began: began, used: map[string]int{}}
}

// AssumeFirstUntil notes that the request is made for the first time, and that nobody makes it once more before a time:
// until then its facts need not be looked for.
func (o *Once) AssumeFirstUntil(t time.Time) { o.first = t }

// MaybeRetry reports whether the facts of the request may stand in the store already.
func (o *Once) MaybeRetry() bool { return o != nil && !time.Now().Before(o.first) }

// next derives an id for a purpose, another one each time that the request asks for it.
func (o *Once) next(purpose string) (id uuid.UUID, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.used[purpose]++
	return o.nth(purpose, o.used[purpose]), o.used[purpose]
}

// peek is the id that next returns next.
func (o *Once) peek(purpose string) uuid.UUID {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.nth(purpose, o.used[purpose]+1)
}

func (o *Once) nth(purpose string, n int) uuid.UUID {
	return uuid.NewSHA1(o.seed, binary.BigEndian.AppendUint32([]byte(purpose+"\x00"), uint32(n)))
}

// NewID is like the function of that name; the nth call returns the same id each time that the request is made.
func (o *Once) NewID() string {
	if o == nil {
		return NewID()
	}
	seed, n := o.next("id")
	sum := sha256.Sum256(seed[:])
	// shaped as a version 7: milliseconds, then the number of the call, then what no other request has
	id := uuid.UUID(sum[:16])
	binary.BigEndian.PutUint64(id[:8], uint64(o.began.UnixMilli())<<16|7<<12|uint64(n)&0xfff)
	id[8] = id[8]&0x3f | 0x80
	return id.String()
}

// eventIDs derives the ids of the events of a command, nil where they need not be found again.
func (o *Once) eventIDs(stream, command string) func(i int) uuid.UUID {
	if o == nil {
		return nil
	}
	seed, _ := o.next(stream + "\x00" + command)
	return idsFrom(seed)
}

// peekEventIDs is what eventIDs returns next.
func (o *Once) peekEventIDs(stream, command string) func(i int) uuid.UUID {
	if o == nil {
		return nil
	}
	return idsFrom(o.peek(stream + "\x00" + command))
}

func idsFrom(seed uuid.UUID) func(i int) uuid.UUID {
	return func(i int) uuid.UUID { return uuid.NewSHA1(seed, binary.BigEndian.AppendUint32(nil, uint32(i))) }
}

// storedNames are what commands are called in the ids of events, where their types have other names by now.
var storedNames = map[string]string{"commands.InviteMember": "commands.AddMember"}

// storedName is what a command is called in the ids of the events of a request with an Idempotency-Key. It never
// changes, so that a retry after an update finds what the request did before it.
func storedName(cmd any) string {
	name := fmt.Sprintf("%T", cmd)
	return cmp.Or(storedNames[name], name)
}
