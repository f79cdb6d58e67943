package writer

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"
	"time"

	"github.com/google/uuid"

	"flagledger/commands"
)

// Once identifies a request that may be retried because its answer was lost. All its ids are derived from it, so that
// a retry finds its own facts instead of adding them again.
type Once struct {
	seed  uuid.UUID
	began time.Time
	first time.Time // until then only the first attempt can run

	mu   sync.Mutex
	used map[string]int // how many ids each purpose has taken
}

// requests is the namespace of the seeds.
var requests = uuid.MustParse("6c6b2c9e-0c1b-5f0d-8a41-6f0f8b0d9a35")

// NewOnce identifies a request by what its retries have in common, and by the time of the first attempt in
// milliseconds.
func NewOnce(identity []byte, began time.Time) *Once {
	data := binary.BigEndian.AppendUint64(nil, uint64(began.UnixMilli()))
	return &Once{seed: uuid.NewSHA1(requests, append(data, identity...)), began: began, used: map[string]int{}}
}

// AssumeFirstUntil records that this is the first attempt, and that no other one runs before a time: until then there
// are no facts to search for.
func (o *Once) AssumeFirstUntil(t time.Time) { o.first = t }

// MaybeRetry reports whether the store may already hold facts of the request.
func (o *Once) MaybeRetry() bool { return o != nil && !time.Now().Before(o.first) }

// next derives the next id for a purpose.
func (o *Once) next(purpose string) (id uuid.UUID, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.used[purpose]++
	return o.nth(purpose, o.used[purpose]), o.used[purpose]
}

// peek returns the id that next will return.
func (o *Once) peek(purpose string) uuid.UUID {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.nth(purpose, o.used[purpose]+1)
}

func (o *Once) nth(purpose string, n int) uuid.UUID {
	return uuid.NewSHA1(o.seed, binary.BigEndian.AppendUint32([]byte(purpose+"\x00"), uint32(n)))
}

// NewID works like the package's NewID, but the nth call returns the same id in every attempt.
func (o *Once) NewID() string {
	if o == nil {
		return commands.NewID()
	}
	seed, n := o.next("id")
	sum := sha256.Sum256(seed[:])
	// The shape of a version 7: milliseconds, the number of the call, then the request's own bits.
	id := uuid.UUID(sum[:16])
	binary.BigEndian.PutUint64(id[:8], uint64(o.began.UnixMilli())<<16|7<<12|uint64(n)&0xfff)
	id[8] = id[8]&0x3f | 0x80
	return id.String()
}

// eventIDs derives the ids of a command's events; nil if they need not be found again.
func (o *Once) eventIDs(stream, command string) func(i int) uuid.UUID {
	if o == nil {
		return nil
	}
	seed, _ := o.next(stream + "\x00" + command)
	return idsFrom(seed)
}

// peekEventIDs returns what eventIDs will return.
func (o *Once) peekEventIDs(stream, command string) func(i int) uuid.UUID {
	if o == nil {
		return nil
	}
	return idsFrom(o.peek(stream + "\x00" + command))
}

func idsFrom(seed uuid.UUID) func(i int) uuid.UUID {
	return func(i int) uuid.UUID { return uuid.NewSHA1(seed, binary.BigEndian.AppendUint32(nil, uint32(i))) }
}
