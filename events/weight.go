package events

import (
	"bytes"
	"fmt"
	"strconv"
)

// Weight is a variation's share of a split, in thousandths. In JSON it is a decimal number: 12500 is 12.5.
type Weight int64

// MaxWeight is the largest weight: a hundred of them still multiply with 32 hash bits within 64 bits.
const MaxWeight Weight = 10_000_000

var errWeight = fmt.Errorf("must be a number from 0 to %d with at most three decimals", MaxWeight/1000)

// ParseWeight reads a JSON number from 0 to MaxWeight with at most three decimals, without rounding.
func ParseWeight(number []byte) (Weight, error) {
	if bytes.ContainsAny(number, "eE") {
		f, err := strconv.ParseFloat(string(number), 64)
		if err != nil || f < 0 || f > float64(MaxWeight)/1000 {
			return 0, errWeight
		}
		number = strconv.AppendFloat(nil, f, 'f', -1, 64)
	}
	whole, decimals, _ := bytes.Cut(number, []byte("."))
	decimals = bytes.TrimRight(decimals, "0")
	if len(whole) == 0 || len(decimals) > 3 {
		return 0, errWeight
	}
	digits := append(append([]byte{}, whole...), decimals...)
	for range 3 - len(decimals) {
		digits = append(digits, '0')
	}
	w, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil || w < 0 || Weight(w) > MaxWeight {
		return 0, errWeight
	}
	return Weight(w), nil
}

// MarshalJSON writes the weight as a decimal number.
func (w Weight) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(w)/1000, 'f', -1, 64), nil
}

// UnmarshalJSON reads what ParseWeight reads.
func (w *Weight) UnmarshalJSON(number []byte) (err error) {
	*w, err = ParseWeight(number)
	return err
}
