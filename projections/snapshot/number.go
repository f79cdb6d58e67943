package snapshot

import "strconv"

// Number is a number among the attributes of a Context.
type Number struct {
	value float64
}

// ParseNumber reads a JSON number.
func ParseNumber(text []byte) Number {
	value, _ := strconv.ParseFloat(string(text), 64) // infinite where it is out of range
	return Number{value}
}
