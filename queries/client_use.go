package queries

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// ClientUse is how often a machine client evaluated flags. People together are one without an id.
type ClientUse struct {
	ClientID    *string
	Name        *string // today's, or the last of one that was deleted
	Evaluations int64
	LastSeen    time.Time
}

// shownClients is how many clients metrics name, the most active.
const shownClients = 50

// clients adds up what clients evaluated, by their ids; people have none.
type clients map[string]ClientUse

// add adds the clients of a use: {"<client's id>": [evaluations, the last second of the Unix time]}.
func (c clients) add(object []byte) error {
	var counts map[string][2]int64
	if err := json.Unmarshal(object, &counts); err != nil {
		return err
	}
	for id, of := range counts {
		sum := c[id]
		sum.Evaluations += of[0]
		if last := time.Unix(of[1], 0).UTC(); last.After(sum.LastSeen) {
			sum.LastSeen = last
		}
		c[id] = sum
	}
	return nil
}

// mostActive lists the clients that evaluated most.
func (c clients) mostActive() []ClientUse {
	list := make([]ClientUse, 0, len(c))
	for id, sum := range c {
		if id != "" {
			sum.ClientID = &id
		}
		if sum.Evaluations > 0 {
			list = append(list, sum)
		}
	}
	id := func(c ClientUse) string {
		if c.ClientID == nil {
			return ""
		}
		return *c.ClientID
	}
	slices.SortFunc(list, func(a, b ClientUse) int {
		return cmp.Or(cmp.Compare(b.Evaluations, a.Evaluations), strings.Compare(id(a), id(b)))
	})
	return list[:min(len(list), shownClients)]
}
