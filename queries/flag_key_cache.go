package queries

import (
	"hash/fnv"
	"math"
	"time"

	"github.com/maypok86/otter/v2"

	"flagledger/events"
)

// Limits of the cache of lists, and how long a list is cached.
const (
	maxCacheBytes      = 64 << 20 // on the node
	maxListBytes       = 8 << 20  // of one list
	cachedListOverhead = 512      // bytes, of a list
	cachedKeyOverhead  = 16       // bytes, of a key in a list
	// keysTTL limits how stale a list can be: retrying a parked stream changes rows without changing a flag.
	keysTTL        = time.Minute
	usageTTL       = 2 * time.Second // for lists that depend on usage or on the time
	usageTTLFactor = 4               // a slow list of usage is cached for this multiple of the time that it took
	// tenantLists limits the cached lists of a tenant.
	tenantLists = 16
	// finalAfter is the age from which historical lists cannot change. Nodes' clocks differ by less.
	finalAfter = time.Minute
)

// cachedListID identifies a cached list of flags.
type cachedListID struct {
	tenantID string
	changed  events.Position // the tenant's last flag change; zero for a final historical list
	list     string          // see FlagList.id
}

// cachedListSlot identifies a cache slot for one list of a tenant. Another list, or a newer version of the list,
// replaces its content.
type cachedListSlot struct {
	tenantID string
	number   uint64
}

func (id cachedListID) slot() cachedListSlot {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(id.list))
	return cachedListSlot{id.tenantID, hash.Sum64() % tenantLists}
}

type cachedKeys struct {
	id    cachedListID
	keys  []string
	until time.Time
}

// flagKeyCache caches the ordered keys of lists of flags, so that a page is read by its keys without sorting and
// counting the list again. The few slots for each tenant leave room for all tenants.
type flagKeyCache struct {
	lists *otter.Cache[cachedListSlot, cachedKeys]
}

func newFlagKeyCache() *flagKeyCache {
	return &flagKeyCache{otter.Must(&otter.Options[cachedListSlot, cachedKeys]{
		MaximumWeight:    maxCacheBytes,
		Weigher:          func(_ cachedListSlot, c cachedKeys) uint32 { return c.size() },
		ExpiryCalculator: otter.ExpiryWriting[cachedListSlot, cachedKeys](keysTTL),
	})}
}

// size returns the approximate size of a list in bytes.
func (c cachedKeys) size() uint32 {
	size := cachedListOverhead + len(c.id.list)
	for _, key := range c.keys {
		size += cachedKeyOverhead + len(key)
	}
	return uint32(min(size, math.MaxUint32))
}

// get returns the keys of a list that has not expired.
func (f *flagKeyCache) get(id cachedListID, now time.Time) ([]string, bool) {
	cached, ok := f.lists.GetIfPresent(id.slot())
	return cached.keys, ok && cached.id == id && now.Before(cached.until)
}

// put caches the keys of a list, unless it is too large.
func (f *flagKeyCache) put(id cachedListID, keys []string, until time.Time) {
	if cached := (cachedKeys{id, keys, until}); cached.size() <= maxListBytes {
		f.lists.Set(id.slot(), cached)
	}
}
