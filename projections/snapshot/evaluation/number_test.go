package evaluation

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"flagledger/projections/snapshot/evaluation/evaluationtest"
)

func rat(t *rapid.T, text string) *big.Rat {
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		t.Fatalf("%s is no number", text)
	}
	return r
}

func TestNumbersAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := evaluationtest.DrawNumber(t), evaluationtest.DrawNumber(t)
		x, y := ParseNumber([]byte(a)), ParseNumber([]byte(b))
		want := rat(t, a).Cmp(rat(t, b))
		if got := x.compare(y); got != want || (x == y) != (want == 0) {
			t.Fatalf("%s compares to %s as %d, equal: %v; want %d", a, b, got, x == y, want)
		}
	})
}

// asJavaScript writes a number with all digits, as ECMAScript specifies.
func asJavaScript(r *big.Rat) string {
	if r.Sign() < 0 {
		return "-" + asJavaScript(new(big.Rat).Neg(r))
	}
	whole, fraction, _ := strings.Cut(r.FloatString(1100), ".")
	fraction = strings.TrimRight(fraction, "0")
	all := strings.TrimLeft(whole+fraction, "0")
	if all == "" {
		return "0"
	}
	n := len(whole) // the place of the decimal point
	if whole == "0" {
		n = -(len(fraction) - len(strings.TrimLeft(fraction, "0")))
	}
	digits := strings.TrimRight(all, "0")
	k := len(digits)
	switch {
	case k <= n && n <= 21:
		return digits + strings.Repeat("0", n-k)
	case 0 < n && n <= 21:
		return digits[:n] + "." + digits[n:]
	case -6 < n && n <= 0:
		return "0." + strings.Repeat("0", -n) + digits
	}
	if k > 1 {
		digits = digits[:1] + "." + digits[1:]
	}
	return fmt.Sprintf("%se%+d", digits, n-1)
}

func TestNumbersAsUnits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := evaluationtest.DrawNumber(t)
		salt := newMurmur(rapid.StringN(0, 8, -1).Draw(t, "salt"))
		want := asJavaScript(rat(t, text))
		if ParseNumber([]byte(text)).hash(salt) != salt.text(want) {
			t.Fatalf("%s is not the unit %s", text, want)
		}
	})
}

// A float64 as a unit equals the text that the client itself would write.
func TestFloatsAsUnits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.Float64().Draw(t, "float")
		text := strconv.FormatFloat(f, 'g', -1, 64)
		salt := newMurmur("s")
		if got, want := ParseNumber([]byte(text)).hash(salt), salt.text(asJavaScript(rat(t, text))); got != want {
			t.Fatalf("%s is another unit", text)
		}
	})
}

func TestHugeExponents(t *testing.T) {
	ordered := []string{
		"-1e999999999999999999999",
		"-1e99999999",
		"0",
		"1e-999999999999999999999",
		"1e-99999999",
		"1",
		"1e99999999",
		"1e999999999999999999999",
	}
	for i, a := range ordered {
		for j, b := range ordered {
			x, y := ParseNumber([]byte(a)), ParseNumber([]byte(b))
			if got := x.compare(y); got != min(1, max(-1, i-j)) {
				t.Errorf("%s compares to %s as %d", a, b, got)
			}
		}
		_ = ParseNumber([]byte(a)).hash(murmur{})
	}
}

func FuzzParseNumber(f *testing.F) {
	for _, text := range []string{"", "-", "1", "-1.5e+300", "00.00", "1e", "1e-", ".", "e5", "1.2.3", strings.Repeat("1", 50)} {
		f.Add([]byte(text), []byte("1"))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		x, y := ParseNumber(a), ParseNumber(b)
		if x.compare(y) != -y.compare(x) || (x.compare(y) == 0) != (x == y) {
			t.Errorf("%q and %q have no order", a, b)
		}
		_ = x.hash(murmur{})
	})
}
