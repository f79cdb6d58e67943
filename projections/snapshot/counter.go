package snapshot

import (
	"sync/atomic"
	"unsafe"
)

// counter is a count that many add to at once. It has stripes as soon as two have added at the same moment, while the
// node has some left.
type counter struct {
	n       atomic.Uint64
	stripes atomic.Pointer[stripes]
}

// stripes are parts of a count, each in a line of the cache of its own.
type stripes [1 << stripeBits]struct {
	n atomic.Uint64
	_ [56]byte
}

const (
	stripeBits = 5
	// maxStriped is how many counters of a node may get stripes in an hour; all of them take 8 MiB.
	maxStriped = 1 << 12
)

// add adds n. striped is how many counters of the node have got stripes.
func (c *counter) add(n uint64, striped *atomic.Int64) {
	if s := c.stripes.Load(); s != nil {
		s[stripe()].n.Add(n)
		return
	}
	if before := c.n.Load(); !c.n.CompareAndSwap(before, before+n) {
		c.n.Add(n)
		if striped.Add(1) <= maxStriped {
			c.stripes.CompareAndSwap(nil, &stripes{})
		}
	}
}

// stripe picks a shard by the address of the goroutine's stack, which differs between goroutines that run at once. A
// token of a sync.Pool, as in xsync.Counter, takes four times as long as counting.
func stripe() uint32 {
	var here byte
	address := uintptr(unsafe.Pointer(&here)) //nolint:gosec // only its number is used
	return uint32(address>>11) * 2654435769 >> (32 - stripeBits)
}

// bytes is how much memory its stripes take.
func (c *counter) bytes() int {
	if c.stripes.Load() == nil {
		return 0
	}
	return int(unsafe.Sizeof(stripes{}))
}

func (c *counter) load() uint64 {
	n := c.n.Load()
	if s := c.stripes.Load(); s != nil {
		for i := range s {
			n += s[i].n.Load()
		}
	}
	return n
}
