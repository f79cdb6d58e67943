package projections

import (
	"slices"

	"flagledger/events"
)

const (
	windowEvents = 2000    // in a window, or slightly more
	windowBytes  = 8 << 20 // of JSON, or slightly more
	pageEvents   = 1000    // taken from a window at once, or one page of the store
)

// window is a range of the log: consecutive pages of one subscription, which drops the oldest as new ones come.
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

// dropOldest drops the first page.
func (w *window) dropOldest() {
	w.count(w.pages[0], -1)
	w.start = w.pages[0].Next
	w.pages = slices.Delete(w.pages, 0, 1) // also releases the events
}

// dropUpTo drops the pages that end at or before a position.
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

// holds reports whether the window has, or will get, all events after a position.
func (w *window) holds(position events.Position) bool { return position.Compare(w.start) >= 0 }

// after returns the events after a position in the window. If there are none yet, Next is the position.
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
