package usage

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// ClientUse holds how often a machine client evaluated flags. All people together have one entry without an id.
type ClientUse struct {
	ClientID    *string
	Name        *string // the current name, or the last one of a deleted client
	Evaluations int64
	Reported    int64 // how many of them were reported
	LastSeen    time.Time
}

// MaxClients limits the clients in metrics to the most active.
const MaxClients = 50

// clients sums the evaluations of clients by id. People have the empty id.
type clients map[string]ClientUse

// add adds a row's clients: {"<client id>": [evaluations, last Unix second, reported]}; the last may be missing.
func (c clients) add(object []byte) error {
	var counts map[string][3]int64
	if err := json.Unmarshal(object, &counts); err != nil {
		return err
	}
	for id, of := range counts {
		sum := c[id]
		sum.Evaluations += of[0]
		sum.Reported += of[2]
		if last := time.Unix(of[1], 0).UTC(); last.After(sum.LastSeen) {
			sum.LastSeen = last
		}
		c[id] = sum
	}
	return nil
}

// mostActive returns the most active clients, up to MaxClients.
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
	return list[:min(len(list), MaxClients)]
}
