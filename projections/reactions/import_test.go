package reactions_test

import (
	"errors"
	"testing"

	"flagledger/projections/reactions"
)

func TestNoJobsAreMadeFromFactsThatAreImported(t *testing.T) {
	t.Parallel()
	w := followed(t, "1")
	w.invite("2") // before the servers were stopped
	before := func(logID string) error {
		return w.reactions(w.store).BeforeImport(t.Context(), logID)
	}
	for range 2 { // it may be interrupted and started again
		if err := before("another log"); err != nil {
			t.Fatal(err)
		}
		w.invite("imported")
	}
	r, stop := w.follow(w.store)
	w.invite("3")
	w.wantJobs("1", "2", "3")
	if r.AnotherLog() {
		t.Error("the log is taken for another one")
	}
	if err := before("another log"); !errors.Is(err, reactions.ErrServerRuns) {
		t.Errorf("while a node follows the log: %v, want ErrServerRuns", err)
	}
	stop()

	// This log's missing facts, as in a restore.
	log, err := w.store.Log(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := before(log.ID); err != nil {
		t.Fatal(err)
	}
	w.invite("4")
	w.follow(w.store)
	w.wantJobs("1", "2", "3", "4")
}
