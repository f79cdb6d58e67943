package models

import (
	"strings"
	"testing"

	"flagledger/events"
)

func TestEachReadModelFollowsTheStreamsThatItStandsUnder(t *testing.T) {
	for _, prefix := range events.StreamPrefixes() {
		list, _ := byStream.Lookup(prefix)
		for _, p := range list {
			for _, followed := range p.FactPrefixes {
				if facts := strings.TrimSuffix(prefix, "-") + "."; !strings.HasPrefix(followed, facts) {
					t.Errorf("%s follows %s and stands under %s", p.Name, followed, facts)
				}
			}
		}
	}
}
