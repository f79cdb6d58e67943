package evaluation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/twmb/murmur3"
	"pgregory.net/rapid"

	"flagledger/events"
	"flagledger/events/state"
)

// TestBucketingVectors compares bucketing with the published vectors.
func TestBucketingVectors(t *testing.T) {
	text, err := os.ReadFile("../../../docs/bucketing.json")
	if err != nil {
		t.Fatal(err)
	}
	var published struct {
		Vectors []struct {
			Note, Salt, Unit string
			Weights          []int64
			Total, Bucket    uint64
			Hash             uint32
			Variation        int
		}
		Numbers struct {
			Salt    string
			Vectors []struct {
				Attribute, Unit string
				Hash            uint32
			}
		}
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&published); err != nil || len(published.Vectors) == 0 || len(published.Numbers.Vectors) == 0 {
		t.Fatal("the vectors cannot be read: ", err)
	}
	for _, v := range published.Vectors {
		split := splitOf(v.Salt, v.Weights...)
		served, ok := split.pick(&Context{TargetingKey: v.Unit})
		if hash := newMurmur(v.Salt).text(v.Unit).
			sum(); hash != v.Hash || split.total != v.Total ||
			bucketOf(v.Salt, v.Unit, v.Total) != v.Bucket {
			t.Errorf("%+v: the hash is %d, the total %d, the bucket %d", v, hash, split.total, bucketOf(v.Salt, v.Unit, v.Total))
		}
		if !ok || served.ID != fmt.Sprint(v.Variation) {
			t.Errorf("%+v: variation %s is served", v, served.ID)
		}
	}
	for _, v := range published.Numbers.Vectors {
		salt := newMurmur(published.Numbers.Salt)
		if got := ParseNumber([]byte(v.Attribute)).hash(salt); got.sum() != v.Hash || got != salt.text(v.Unit) {
			t.Errorf("%+v: the hash is %d", v, got.sum())
		}
	}
}

func TestMurmurInParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.String()).Draw(t, "parts")
		var h murmur
		for _, part := range parts {
			h = h.text(part)
		}
		if got, want := h.sum(), murmur3.StringSum32(strings.Join(parts, "")); got != want {
			t.Fatalf("the hash is %d, another implementation says %d", got, want)
		}
	})
}

// splitOf returns a split among variations named by their index.
func splitOf(salt string, weights ...int64) *rollout {
	s := state.Flag{}
	s.Salt = salt
	for i, w := range weights {
		s.Variations = append(s.Variations, choice(fmt.Sprint(i), "1", events.Weight(w)))
	}
	f, err := Compile(&s, nil, nil)
	if err != nil {
		panic(err)
	}
	return f.split
}

// units are many, and sit in contexts of their own.
func units(n int) []Context {
	list := make([]Context, n)
	for i := range list {
		list[i].TargetingKey = fmt.Sprintf("user-%d", i)
	}
	return list
}

func drawWeights(t *rapid.T) []int64 {
	weights := rapid.SliceOfN(rapid.Int64Range(0, 100_000), 2, 6).Draw(t, "weights")
	weights[rapid.IntRange(0, len(weights)-1).Draw(t, "at least one")]++
	return weights
}

func TestSharesOfASplit(t *testing.T) {
	units := units(100_000)
	rapid.Check(t, func(t *rapid.T) {
		weights := drawWeights(t)
		split := splitOf(rapid.StringMatching(`[A-Z0-9]{8}`).Draw(t, "salt"), weights...)
		counts := map[string]int{}
		for i := range units {
			v, _ := split.pick(&units[i])
			counts[v.ID]++
		}
		for i, w := range weights {
			want := float64(w) / float64(split.total)
			if got := float64(counts[fmt.Sprint(i)]) / float64(len(units)); math.Abs(got-want) > 0.01 {
				t.Fatalf("weights %v: variation %d has a share of %.4f, want %.4f", weights, i, got, want)
			}
		}
	})
}

func TestAShareThatGrowsLosesNoUnit(t *testing.T) {
	units := units(2_000)
	rapid.Check(t, func(t *rapid.T) {
		weights := drawWeights(t)
		grows := rapid.IntRange(0, len(weights)-1).Draw(t, "grows")
		by := rapid.Int64Range(1, 100_000).Draw(t, "by")
		after := append([]int64{}, weights...)
		after[grows] += by
		neighbour := grows + rapid.SampledFrom([]int{-1, +1}).Draw(t, "neighbour")
		if neighbour >= 0 && neighbour < len(weights) && rapid.Bool().Draw(t, "at its expense") {
			after[grows] -= by
			by = min(by, after[neighbour])
			after[neighbour] -= by
			after[grows] += by
		}
		a, b := splitOf("s", weights...), splitOf("s", after...)
		for i := range units {
			from, _ := a.pick(&units[i])
			to, _ := b.pick(&units[i])
			switch grown := fmt.Sprint(grows); {
			case from.ID == grown && to.ID != grown:
				t.Fatalf("%s falls out of variation %d, which grows from %v to %v", units[i].TargetingKey, grows, weights, after)
			case a.total == b.total && from.ID != to.ID && to.ID != grown:
				t.Fatalf("%s moves from %s to %s, where only variation %d grows from %v to %v", units[i].TargetingKey, from.ID,
					to.ID, grows, weights, after)
			}
		}
	})
}

// bucketOf computes the bucket of a unit as docs/bucketing.md describes it.
func bucketOf(salt, unit string, total uint64) uint64 {
	return uint64(murmur3.StringSum32(salt+":"+unit)) * total >> 32
}
