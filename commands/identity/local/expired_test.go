package local

import (
	"testing"

	"flagledger/migrations/pgtest"
)

func TestExpiredTokensAreRemoved(t *testing.T) {
	c := newClock()
	pool := pgtest.Pool(t)
	for _, statement := range []string{
		`insert into keep.refresh_tokens (hash, family, user_id, session_id, issued_at, expires_at)
			select sha256(n::text::bytea), gen_random_uuid(), 'u', 's', $1, case when n <= $2 then $1 else $1::timestamptz + interval '1 ms' end from generate_series(1, $2::int + 2) n`,
		`insert into keep.mailed_tokens (hash, purpose, user_id, issued_at, expires_at)
			select sha256(n::text::bytea), 'reset', 'u', $1, case when n <= $2 then $1 else $1::timestamptz + interval '1 ms' end from generate_series(1, $2::int + 2) n`,
	} {
		if _, err := pool.Exec(t.Context(), statement, c.now(), removedAtOnce+1); err != nil {
			t.Fatal(err)
		}
	}
	if err := RemoveExpired(t.Context(), pool, c.now()); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"refresh_tokens", "mailed_tokens"} {
		var n int
		if err := pool.QueryRow(t.Context(), `select count(*) from keep.`+table).Scan(&n); err != nil || n != 2 {
			t.Errorf("%d of %s are left, want 2 (%v)", n, table, err)
		}
	}
}
