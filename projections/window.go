package projections

import (
	"slices"

	"flagledger/events"
)

const (
	windowEvents = 2000    // that a window keeps, or somewhat more
	windowBytes  = 8 << 20 // of their JSON, likewise
	pageEvents   = 1000    // that are taken from a window at once, or as many as stand on one page of the store
)

// window is a stretch of the log: consecutive pages of one subscription, of which old ones are dropped as new ones
// come.
type window struct {
	pages  []events.Page
	start  events.Position // before the first page
	end    events.Position // after the last one
	live   bool            // the end was the end of the log when the last page was read
	events int
	bytes  int
}

func newWindow(start events.Position) *window { return &window{start: start, end: start} }

func (w *window) add(page events.Page) {
	if len(page.Events) > 0 || page.Next != w.end {
		w.pages = append(w.pages, page)
		w.count(page, +1)
	}
	w.end, w.live = page.Next, page.Live
}

func (w *window) full() bool { return w.events >= windowEvents || w.bytes >= windowBytes }

// dropOldest forgets the first page.
func (w *window) dropOldest() {
	w.count(w.pages[0], -1)
	w.start = w.pages[0].Next
	w.pages = slices.Delete(w.pages, 0, 1) // which also lets go of the events
}

// dropUpTo forgets the pages that end at a position or before.
func (w *window) dropUpTo(position events.Position) {
	for len(w.pages) > 0 && w.pages[0].Next.Compare(position) <= 0 {
		w.dropOldest()
	}
}

func (w *window) count(page events.Page, sign int) {
	w.events += sign * len(page.Events)
	for _, e := range page.Events {
		w.bytes += sign * (len(e.Stored.Data) + len(e.Stored.Metadata))
	}
}

// holds tells whether all that comes after a position stands in the window, or is still to come.
func (w *window) holds(position events.Position) bool { return position.Compare(w.start) >= 0 }

// after returns what comes after a position that the window holds. Where that is nothing yet, Next is the position.
func (w *window) after(position events.Position) events.Page {
	page := events.Page{Next: position}
	for _, p := range w.pages {
		if p.Next.Compare(position) <= 0 {
			continue
		}
		list := p.Events
		for len(list) > 0 && list[0].Position.Compare(position) <= 0 {
			list = list[1:]
		}
		if len(page.Events) > 0 && len(page.Events)+len(list) > pageEvents {
			break
		}
		page.Events = append(page.Events[:len(page.Events):len(page.Events)], list...)
		page.Next = p.Next
	}
	page.Live = w.live && page.Next == w.end
	return page
}
