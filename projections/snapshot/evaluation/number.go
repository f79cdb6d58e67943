package evaluation

import (
	"math"
	"strconv"
	"strings"
)

// Number is the exact value of a JSON number in a Context: numbers of the same value are ==, however they are written.
// Only exponents over a billion are capped.
type Number struct {
	// The value is 0.ddd times ten to the exponent: digits has the first 19 digits, padded with zeros, and rest those
	// after them, without trailing zeros. For zero, all fields are zero.
	digits   uint64
	rest     string
	exponent int32
	negative bool
}

const (
	firstDigits = 19 // as many as a uint64 holds
	maxExponent = 1_000_000_000
)

// ParseNumber parses a JSON number. It allocates only for numbers of more than 19 significant digits.
func ParseNumber(text []byte) Number {
	n := Number{}
	exponent, count, fraction, more := 0, 0, false, -1
	if len(text) > 0 && text[0] == '-' {
		n.negative, text = true, text[1:]
	}
	i := 0
	for ; i < len(text); i++ {
		c := text[i]
		if c == '.' {
			fraction = true
			continue
		}
		if c < '0' || c > '9' {
			break
		}
		if count == 0 && c == '0' { // a leading zero
			if fraction {
				exponent--
			}
			continue
		}
		if !fraction {
			exponent++
		}
		if count < firstDigits {
			n.digits = n.digits*10 + uint64(c-'0')
		} else if more < 0 && c != '0' {
			more = i
		}
		count++
	}
	if n.digits == 0 {
		return Number{}
	}
	for ; count < firstDigits; count++ {
		n.digits *= 10
	}
	if more >= 0 {
		n.rest = restOf(text[:i])
	}
	if i < len(text) && (text[i] == 'e' || text[i] == 'E') {
		exponent += parseExponent(text[i+1:])
	}
	n.exponent = int32(max(-maxExponent, min(exponent, maxExponent)))
	return n
}

// restOf returns the significant digits after the first 19, without trailing zeros.
func restOf(text []byte) string {
	digits := strings.TrimLeft(strings.Replace(string(text), ".", "", 1), "0")
	return strings.Clone(strings.TrimRight(digits[firstDigits:], "0"))
}

func parseExponent(text []byte) int {
	e, err := strconv.Atoi(string(text))
	if err != nil && e == 0 {
		return 0 // not JSON
	}
	return max(-math.MaxInt32, min(e, math.MaxInt32)) // out of range, Atoi returns the nearest int
}

// compare returns -1, 0 or 1 if n is less than, equal to or greater than m.
func (n Number) compare(m Number) int {
	if n.sign() != m.sign() {
		if n.sign() < m.sign() {
			return -1
		}
		return 1
	}
	larger := 1
	if n.negative {
		larger = -1
	}
	switch {
	case n.exponent != m.exponent:
		if n.exponent < m.exponent {
			return -larger
		}
		return larger
	case n.digits != m.digits:
		if n.digits < m.digits {
			return -larger
		}
		return larger
	default:
		return larger * strings.Compare(n.rest, m.rest)
	}
}

func (n Number) sign() int {
	switch {
	case n.digits == 0:
		return 0
	case n.negative:
		return -1
	default:
		return 1
	}
}

// hash continues a hash with the number as String writes it.
func (n Number) hash(h murmur) murmur { return writeNumber(n, h) }

// String formats the number as JavaScript does, but with all digits: 42, 1.5, 1e+21.
func (n Number) String() string { return string(writeNumber(n, digits(nil))) }

// writer is written to piece by piece, and returns its new state.
type writer[W any] interface {
	byte(c byte) W
	text(s string) W
}

// digits is a writer that collects the bytes.
type digits []byte

func (d digits) byte(c byte) digits   { return append(d, c) }
func (d digits) text(s string) digits { return append(d, s...) }

// writeNumber writes a number in the format of String.
func writeNumber[W writer[W]](n Number, w W) W {
	var buffer [firstDigits + 1]byte
	first := strconv.AppendUint(buffer[:0], n.digits, 10)
	for n.rest == "" && len(first) > 1 && first[len(first)-1] == '0' {
		first = first[:len(first)-1]
	}
	if n.negative {
		w = w.byte('-')
	}
	count, point := len(first)+len(n.rest), int(n.exponent)
	if n.digits == 0 {
		point = 1
	}
	scientific := point > 21 || point < -5
	if scientific {
		point = 1
	}
	if point <= 0 {
		w = w.text("0.")
		for ; point < 0; point++ {
			w = w.byte('0')
		}
		point = count
	}
	for i := range max(count, point) {
		if i == point {
			w = w.byte('.')
		}
		switch {
		case i < len(first):
			w = w.byte(first[i])
		case i < count:
			w = w.byte(n.rest[i-len(first)])
		default:
			w = w.byte('0')
		}
	}
	if scientific {
		e := int64(n.exponent) - 1
		w = w.byte('e')
		if e > 0 {
			w = w.byte('+')
		}
		for _, c := range strconv.AppendInt(buffer[:0], e, 10) {
			w = w.byte(c)
		}
	}
	return w
}
