package commands

import (
	"sync"
	"time"

	"flagledger/events"
	"flagledger/events/state"
)

// written counts the bytes that each tenant has written on a day, in UTC.
type written struct {
	mu    sync.Mutex
	day   time.Time // its beginning
	bytes map[string]int
}

// on returns the counts of the day of a time. It forgets those of the day before, and of a day far ahead, which the
// clock has been on.
func (w *written) on(now time.Time) map[string]int {
	if day := dayOf(now); w.bytes == nil || day.After(w.day) || w.day.Sub(day) > 24*time.Hour {
		w.day, w.bytes = day, map[string]int{}
	}
	return w.bytes
}

// WrittenToday is how many bytes a tenant has written on this node since the beginning of the day in UTC, or since the
// node started: its facts, and what NoteWritten added.
func (w *Writer) WrittenToday(tenantID string) int {
	w.written.mu.Lock()
	defer w.written.mu.Unlock()
	return w.written.on(w.now())[tenantID]
}

// UnpaidWrittenToday is how many bytes the tenants of a person have written that nobody pays for, as WrittenToday has
// it, those that were deleted since included, and what NoteWrittenBy added.
func (w *Writer) UnpaidWrittenToday(creator string) int {
	return w.WrittenToday(freeTierKey(creator))
}

// freeTierKey is what the tenants of a person count under together: no tenant's id.
func freeTierKey(creator string) string { return "unpaid of " + creator }

// NoteWritten adds bytes that were stored for a tenant beside its facts.
func (w *Writer) NoteWritten(tenantID string, bytes int) {
	if tenantID == "" {
		return
	}
	creator := w.UnpaidCreator(tenantID)
	w.written.mu.Lock()
	defer w.written.mu.Unlock()
	counts := w.written.on(w.now())
	counts[tenantID] += bytes
	if creator != "" {
		counts[freeTierKey(creator)] += bytes
	}
}

// NoteWrittenBy adds bytes that were stored for a person and belong to no tenant.
func (w *Writer) NoteWrittenBy(userID string, bytes int) {
	if userID == "" {
		return
	}
	w.written.mu.Lock()
	defer w.written.mu.Unlock()
	w.written.on(w.now())[freeTierKey(userID)] += bytes
}

// encodedBytes is how many bytes events take in the store.
func encodedBytes(batch []events.Event) (n int) {
	for _, e := range batch {
		stored, _ := events.Encode(e) // the store did the same
		n += len(stored.Data) + len(stored.Metadata)
	}
	return n
}

// pastBytes is about how many bytes the read models keep of the past because of facts, beside what the facts hold: what
// lists show of a flag or project once more for each fact that changes it, and of a flag a whole state now and then.
func pastBytes(of any, facts []events.Fact) (n int) {
	for _, fact := range facts {
		switch s := of.(type) {
		case *state.Flag:
			n += s.Bytes() / state.StoredEvery
			switch fact.(type) {
			case events.FlagUpdated, events.FlagStatusChanged:
				n += len(s.Name) + len(s.Description)
				for _, tag := range s.Tags {
					n += len(tag)
				}
			}
		case *state.Project:
			if _, updated := fact.(events.ProjectUpdated); updated {
				n += len(s.Name) + len(s.Description)
			}
		}
	}
	return n
}
