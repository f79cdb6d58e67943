package queries

import (
	"maps"
	"strings"
	"sync"
	"time"

	"flagledger/events"
)

// flagKeys are the keys that a list of flags has, in its order. They are one text: a key of its own would take more for its place than for its letters.
type flagKeys struct {
	text string
	ends []uint32 // where each key ends
}

func (k flagKeys) size() int { return len(k.text) + 4*cap(k.ends) }

func (k *flagKeys) add(text *strings.Builder, key string) {
	text.WriteString(key)
	k.ends = append(k.ends, uint32(text.Len())) // a tenant has 20,000 flags at most, and a key 128 bytes
}

// page returns the keys of a page.
func (k flagKeys) page(p Page) []string {
	first, last := min(p.Offset, len(k.ends)), len(k.ends)
	if p.Limit > 0 {
		last = min(first+p.Limit, last)
	}
	keys := make([]string, 0, last-first)
	for i := first; i < last; i++ {
		start := uint32(0)
		if i > 0 {
			start = k.ends[i-1]
		}
		keys = append(keys, k.text[start:k.ends[i]])
	}
	return keys
}

// What kept lists of flags may take, and how long they are kept at most: a read model whose stream was parked can change without a change of a flag.
const (
	maxCachedKeys       = 64 << 20 // bytes, on the node
	maxCachedKeysTenant = 8 << 20  // bytes, of a tenant
	cachedKeysOverhead  = 512      // bytes, of a list
	cachedKeysFor       = time.Minute
	cachedUseFor        = 2 * time.Second // of lists that depend on the use of flags or on the time
	cachedUseTimes      = 4               // as long as such a list took to read, if that is longer: else each page and call would read it again
	finalAfter          = time.Minute     // how long after a time no further change is recorded as of then: clocks may differ
)

// flagKeyCache keeps the keys of lists of flags, those of now until one of the tenant's flags changes: a page is then read by its keys, and the list is not counted and put in
// order again for it.
type flagKeyCache struct {
	mu    sync.Mutex
	of    map[listsOf]*tenantLists
	bytes int
}

// listsOf tells which lists are bounded, and forgotten, together.
type listsOf struct {
	tenantID string
	past     bool // of times whose lists do not change any more
}

type tenantLists struct {
	changed events.Position       // of the flag that changed last; zero for lists of the past
	lists   map[string]cachedKeys // by what tells them apart: see FlagList.id
	bytes   int
}

type cachedKeys struct {
	flagKeys
	made, until time.Time
}

func newFlagKeyCache() *flagKeyCache { return &flagKeyCache{of: map[listsOf]*tenantLists{}} }

// get returns the keys of a list in which all changes of flags up to a position are.
func (f *flagKeyCache) get(of listsOf, changed events.Position, id string, now time.Time) (flagKeys, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.of[of]
	if t == nil || t.changed != changed {
		return flagKeys{}, false
	}
	kept, ok := t.lists[id]
	return kept.flagKeys, ok && !now.Before(kept.made) && now.Before(kept.until)
}

// put keeps the keys of a list. Those of a tenant that would take too much go for it, and then those of other tenants.
func (f *flagKeyCache) put(of listsOf, changed events.Position, id string, keys flagKeys, now time.Time, during time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	size := keys.size() + len(id) + cachedKeysOverhead
	t := f.of[of]
	switch {
	case size > maxCachedKeysTenant || t != nil && t.changed.Compare(changed) > 0:
		return
	case t != nil && t.changed == changed && t.bytes+size <= maxCachedKeysTenant:
		if before, ok := t.lists[id]; ok {
			f.add(t, -(before.size() + len(id) + cachedKeysOverhead))
		}
	default:
		f.forget(of)
		t = &tenantLists{changed: changed, lists: map[string]cachedKeys{}}
		f.of[of] = t
	}
	t.lists[id] = cachedKeys{keys, now, now.Add(during)}
	f.add(t, size)
	for other := range maps.Keys(f.of) {
		if f.bytes <= maxCachedKeys {
			return
		}
		if other != of {
			f.forget(other)
		}
	}
}

func (f *flagKeyCache) add(t *tenantLists, bytes int) {
	t.bytes += bytes
	f.bytes += bytes
}

func (f *flagKeyCache) forget(of listsOf) {
	if t := f.of[of]; t != nil {
		f.bytes -= t.bytes
		delete(f.of, of)
	}
}
