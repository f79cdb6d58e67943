package writer

import (
	"flagledger/events"
	"flagledger/events/state"
)

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
			n += s.Bytes() / state.StoredStateInterval
			switch fact.(type) {
			case events.FlagUpdated, events.FlagStatusChanged:
				n += s.ListedBytes()
			}
		case *state.Project:
			if _, updated := fact.(events.ProjectUpdated); updated {
				n += s.Size()
			}
		}
	}
	return n
}
