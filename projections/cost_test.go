package projections_test

import (
	"testing"

	"flagledger/projections/models"
)

// The cost of a fact does not grow with the history of its flag: each reads a few rows, however many there are.
func TestAFactLooksAtFewRowsOfALongHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const facts = 1200
	w.switchFlag("a", facts)
	w.rebuild(models.All()...)
	var read int64
	w.eventually("the database tells what it has read", func() bool {
		var scans int64
		err := w.pool.QueryRow(t.Context(), `select sum(idx_scan), sum(idx_scan + idx_tup_read) from pg_stat_user_indexes where relname like '%spans'`).
			Scan(&scans, &read)
		return err == nil && scans >= facts/2/2
	})
	if t.Logf("%d rows", read); read > 20*facts {
		t.Errorf("%d facts looked %d times at spans of the flag", facts, read)
	}
}
