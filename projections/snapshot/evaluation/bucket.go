package evaluation

import "math/bits"

// murmur is an unfinished MurmurHash3_x86_32 (Austin Appleby) with seed 0. It is a value, so that the hash of a salt
// is computed once and copied for each unit; with twmb/murmur3 each copy would allocate.
type murmur struct {
	state  uint32
	tail   uint32 // the bytes after the last block of four
	length uint32
}

// newMurmur begins the hash of a salt and a unit.
func newMurmur(salt string) murmur { return murmur{}.text(salt).byte(':') }

func (h murmur) text(s string) murmur {
	held := h.length % 4 * 8 // bits
	for len(s) >= 4 {
		block := uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
		h.mix(h.tail | block<<held)
		h.tail = block >> (32 - held)
		h.length += 4
		s = s[4:]
	}
	for i := range len(s) {
		h = h.byte(s[i])
	}
	return h
}

func (h murmur) byte(c byte) murmur {
	h.tail |= uint32(c) << (h.length % 4 * 8)
	h.length++
	if h.length%4 == 0 {
		h.mix(h.tail)
		h.tail = 0
	}
	return h
}

const (
	factor1 = 0xcc9e2d51
	factor2 = 0x1b873593
)

func (h *murmur) mix(block uint32) {
	h.state = bits.RotateLeft32(h.state^bits.RotateLeft32(block*factor1, 15)*factor2, 13)*5 + 0xe6546b64
}

func (h murmur) sum() uint32 {
	s := h.state ^ bits.RotateLeft32(h.tail*factor1, 15)*factor2 ^ h.length
	s = (s ^ s>>16) * 0x85ebca6b
	s = (s ^ s>>13) * 0xc2b2ae35
	return s ^ s>>16
}

// bucket maps the hash to [0, total), evenly: (hash * total) >> 32. total is less than 1<<32.
func (h murmur) bucket(total uint64) uint64 { return uint64(h.sum()) * total >> 32 }
