package evaluationtest

import (
	"testing"

	"pgregory.net/rapid"
)

// CheckUntil checks a property, again for some rounds until its examples had every case: a round is few examples.
func CheckUntil(t *testing.T, complete func() bool, property func(*rapid.T)) {
	t.Helper()
	for round := 0; round == 0 || round < 20 && !complete() && !t.Failed(); round++ {
		rapid.Check(t, property)
	}
}
