package usage

import (
	"context"
	"maps"
	"slices"
	"time"

	"flagledger/projections/usage/counted"
)

const (
	// A page is what one transaction writes: pageUses uses, or about pageBytes. Pages are small, because a large one holds
	// up what others write meanwhile.
	pageUses  = 100
	pageBytes = 256 << 10
	// A flush that hurries, as each does after hurryAfter, writes pages that are hurryFactor times as large, to end within
	// flushTimeout.
	hurryAfter  = flushTimeout / 2
	hurryFactor = 20
)

// flushUses writes down the uses that have changed, page by page. After an error the rest is kept for the next flush.
func (m *Meter) flushUses(ctx context.Context, hurry bool) error {
	began := m.now()
	today := began.UTC().Truncate(aDay)
	var late []*page // of past days, which are written last: one may be locked while it is added up
	// by hour: in one hour a flag has one use in an environment, so no statement meets a row twice
	pages := map[time.Time]*page{}
	var err error
	for u := range m.uses.TakeUses() {
		p := pages[u.Hour]
		if p == nil {
			p = &page{hour: u.Hour}
			pages[u.Hour] = p
		}
		p.add(u)
		if !p.full(hurry || m.now().Sub(began) > hurryAfter) {
			continue
		}
		delete(pages, u.Hour)
		if p.hour.Before(today) {
			late = append(late, p)
			continue
		}
		if err = m.writePage(ctx, p); err != nil {
			break
		}
	}
	newestFirst := func(a, b *page) int { return b.hour.Compare(a.hour) }
	for _, p := range append(slices.SortedFunc(maps.Values(pages), newestFirst), late...) {
		if err == nil {
			err = m.writePage(ctx, p)
		} else {
			p.retry()
		}
	}
	m.uses.UsesWritten(m.now())
	return err
}

// page is the uses of an hour that one transaction writes.
type page struct {
	hour  time.Time
	uses  []counted.Use
	bytes int // about
}

func (p *page) add(u counted.Use) {
	p.uses = append(p.uses, u)
	p.bytes += 200 + 60*len(u.Callers)
	for i := range u.Served {
		p.bytes += 30
		if u.Served[i].New {
			p.bytes += len(u.Served[i].Value)
		}
	}
}

// full reports whether a page is large enough to be written, in a flush that hurries or does not.
func (p *page) full(hurry bool) bool {
	factor := 1
	if hurry {
		factor = hurryFactor
	}
	return len(p.uses) >= factor*pageUses || p.bytes >= factor*pageBytes
}

// writePage writes a page. If it fails, TakeUses yields its uses again.
func (m *Meter) writePage(ctx context.Context, p *page) error {
	err := m.db.SendBatch(ctx, p.columns().batch(m.run, m.now())).Close() // one transaction
	if err != nil {
		p.retry()
	}
	return err
}

// retry has TakeUses yield the uses of a page again.
func (p *page) retry() {
	for i := range p.uses {
		p.uses[i].Source.Retry()
	}
}
