package metering

import (
	"fmt"
	"testing"
	"time"
)

// A day of more hours than are read at once has one row a flag, with all hours of the flag in it.
func TestDayOfManyHoursIsSummedWhole(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.clock = time.Date(2026, 3, 16, 2, 0, 0, 0, time.UTC)
	const flags = fetchSize/24 + 2 // the hours of one flag lie on both sides of a fetch
	_, err := c.pool.Exec(t.Context(), `insert into keep.flag_hours
		(tenant_id, hour, flag_key, life, environment_id, evaluations, prefetches, run, reasons, outcomes, clients)
		select 't', '2026-03-15Z'::timestamptz + h * interval '1 hour', 'f' || to_char(f, 'FM0000'), 1, 'e', 1, 2, gen_random_uuid(),
			'{"OFF":1}', '{"o":1}', json_build_object('client', json_build_array(1, h))
		from generate_series(1, $1) f, generate_series(0, 23) h`, flags)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.node().AddUpDays(t.Context()); err != nil {
		t.Fatal(err)
	}
	var days, whole int
	err = c.pool.QueryRow(t.Context(), `select count(*), count(*) filter (where evaluations = 24 and prefetches = 48
		and reasons = '{"OFF":24}' and outcomes = '{"o":24}' and clients = '{"client":[24,23]}') from keep.flag_days`).Scan(&days, &whole)
	if err != nil || days != flags || whole != flags {
		t.Errorf("%d flags have a day, %d of them a whole one (%v); want %d", days, whole, err, flags)
	}
}

// The time that a client was last seen is the latest of its hours, in whichever order they are summed.
func TestLastSeenOfADayIsTheLatest(t *testing.T) {
	for i, order := range [][]int64{{1, 5, 3}, {5, 1, 3}, {3, 1, 5}} {
		var day counts
		for _, seen := range order {
			day.add(&counts{clients: tallies{{name: "c", n: 1, last: seen}}})
		}
		if got := fmt.Sprint(day.clients); got != "[{c 3 5}]" {
			t.Errorf("order %d: the clients are %s", i, got)
		}
	}
}
