package queries

import (
	"math"
	"time"

	"github.com/maypok86/otter/v2"

	"flagledger/events"
)

// Limits of the cache of lists, and how long a list is cached. The read model of a parked stream can change without a
// change of a flag.
const (
	maxCachedKeys      = 64 << 20 // bytes, on the node
	maxCachedList      = 8 << 20  // bytes, of one list
	cachedListOverhead = 512      // bytes, of a list
	cachedKeyOverhead  = 16       // bytes, of a key in a list
	cachedKeysFor      = time.Minute
	cachedUsageFor     = 2 * time.Second // for lists that depend on usage or on the time
	usageTTLFactor     = 4               // such a list that was slow to read is cached for this multiple of that time
	finalAfter         = time.Minute     // after this, no further change is recorded at an earlier time: clocks may differ
)

// cachedListID identifies a cached list of flags.
type cachedListID struct {
	tenantID string
	changed  events.Position // of the tenant's last change of a flag; zero for a list at a time that has become final
	list     string          // see FlagList.id
}

type cachedKeys struct {
	keys  []string
	until time.Time
}

// flagKeyCache caches the keys of lists of flags in their order, so that a page is read by its keys without sorting and
// counting the whole list again.
type flagKeyCache struct {
	lists *otter.Cache[cachedListID, cachedKeys]
}

func newFlagKeyCache() *flagKeyCache {
	return &flagKeyCache{otter.Must(&otter.Options[cachedListID, cachedKeys]{
		MaximumWeight: maxCachedKeys,
		Weigher:       func(id cachedListID, c cachedKeys) uint32 { return c.size(id) },
	})}
}

// size returns about how many bytes a list takes.
func (c cachedKeys) size(id cachedListID) uint32 {
	size := cachedListOverhead + len(id.list)
	for _, key := range c.keys {
		size += cachedKeyOverhead + len(key)
	}
	return uint32(min(size, math.MaxUint32))
}

// get returns the keys of a list that is not expired.
func (f *flagKeyCache) get(id cachedListID, now time.Time) ([]string, bool) {
	cached, ok := f.lists.GetIfPresent(id)
	return cached.keys, ok && now.Before(cached.until)
}

// put caches the keys of a list, unless it is too large.
func (f *flagKeyCache) put(id cachedListID, keys []string, until time.Time) {
	if cached := (cachedKeys{keys, until}); cached.size(id) <= maxCachedList {
		f.lists.Set(id, cached)
	}
}
