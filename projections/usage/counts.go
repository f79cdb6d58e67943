package usage

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"

	"flagledger/projections/usage/counted"
)

// maxClients is those that a tenant can have at once, and people.
const maxClients = 101

// counts are what an hour or a day has.
type counts struct {
	evaluations, prefetches int64
	reasons, outcomes       tallies
	clients                 tallies
}

// tallies are counts by name. There are few.
type tallies []tally

type tally struct {
	name string
	n    int64
	last int64 // of clients: the last second
}

func (t *tallies) add(more tally) {
	if more.n == 0 {
		return
	}
	i := slices.IndexFunc(*t, func(one tally) bool { return one.name == more.name })
	if i < 0 {
		*t = append(*t, more)
		return
	}
	(*t)[i].n += more.n
	(*t)[i].last = max((*t)[i].last, more.last)
}

// countsOf returns the counts of a use. outcome names what it served.
func countsOf(u *counted.Use, outcome func(*counted.Served) string) (c counts) {
	c.prefetches = int64(u.Prefetches)
	for i := range u.Served {
		s := &u.Served[i]
		n := int64(s.Count)
		c.evaluations += n
		c.reasons.add(tally{name: s.Reason, n: n})
		if u.FlagKey != "" {
			c.outcomes.add(tally{name: outcome(s), n: n})
		}
	}
	for _, caller := range u.Callers {
		c.clients.add(tally{caller.ClientID, int64(caller.Count), caller.Seen.Unix()})
	}
	return c
}

// add adds those of another hour.
func (c *counts) add(more *counts) {
	c.evaluations += more.evaluations
	c.prefetches += more.prefetches
	for _, pair := range []struct{ all, more *tallies }{{&c.reasons, &more.reasons}, {&c.outcomes, &more.outcomes},
		{&c.clients, &more.clients}} {
		for _, t := range *pair.more {
			pair.all.add(t)
		}
	}
}

// bound leaves the outcomes and clients that a day may have. The outcomes beyond become the rest.
func (c *counts) bound() {
	most := func(a, b tally) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.name, b.name)) }
	rest := tally{name: counted.RestOutcome}
	c.outcomes = slices.DeleteFunc(c.outcomes, func(t tally) bool {
		if t.name == counted.RestOutcome {
			rest.n += t.n
		}
		return t.name == counted.RestOutcome
	})
	slices.SortFunc(c.outcomes, most)
	for len(c.outcomes) > counted.MaxOutcomes {
		last := len(c.outcomes) - 1
		rest.n += c.outcomes[last].n
		c.outcomes = c.outcomes[:last]
	}
	c.outcomes.add(rest)
	slices.SortFunc(c.clients, most)
	c.clients = c.clients[:min(len(c.clients), maxClients)]
}

// appendJSON appends {"name": n}, or with the last second {"name": [n, last]}.
func (t tallies) appendJSON(b []byte, last bool) []byte {
	b = append(b, '{')
	for i, one := range t {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendText(b, one.name), ':')
		if !last {
			b = strconv.AppendInt(b, one.n, 10)
			continue
		}
		b = strconv.AppendInt(append(b, '['), one.n, 10)
		b = strconv.AppendInt(append(b, ','), one.last, 10)
		b = append(b, ']')
	}
	return append(b, '}')
}

// appendText appends a text as JSON. Nearly all names are plain.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '-' && c != '_' {
			text, _ := json.Marshal(s) // it is a text
			return append(b, text...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// readTallies reads what appendJSON wrote without the last second.
func readTallies(data []byte) (t tallies, err error) {
	var all map[string]int64
	err = json.Unmarshal(data, &all)
	for name, n := range all {
		t = append(t, tally{name: name, n: n})
	}
	return t, err
}

func readClients(data []byte) (t tallies, err error) {
	var all map[string][2]int64
	err = json.Unmarshal(data, &all)
	for name, c := range all {
		t = append(t, tally{name, c[0], c[1]})
	}
	return t, err
}
