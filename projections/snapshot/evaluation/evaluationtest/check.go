package evaluationtest

import (
	"testing"

	"pgregory.net/rapid"
)

// CheckUntil checks a property in several rounds until its examples cover every case: one round draws few examples.
func CheckUntil(t *testing.T, complete func() bool, property func(*rapid.T)) {
	t.Helper()
	for round := 0; round == 0 || round < 20 && !complete() && !t.Failed(); round++ {
		rapid.Check(t, property)
	}
}
