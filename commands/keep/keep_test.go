package keep

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"flagledger/commands"
)

func TestDatabaseError(t *testing.T) {
	if err := DatabaseError("accounts cannot be reached", nil); err != nil {
		t.Errorf("no error comes out as %v", err)
	}
	refusal := &commands.Error{Kind: commands.Conflict, Detail: "taken"}
	for _, c := range []struct {
		err    error
		kind   commands.Kind
		detail string
	}{
		{refusal, commands.Conflict, "taken"},
		{fmt.Errorf("sign up: %w", refusal), commands.Conflict, "taken"},
		{errors.New("connection refused"), commands.Unavailable, "accounts cannot be reached"},
		{&pgconn.PgError{Code: "55000", Message: "recovery is in progress"}, commands.Unavailable, "accounts cannot be reached"},
		// it shuts down
		{&pgconn.PgError{Code: "57P01"}, commands.Unavailable, "accounts cannot be reached"},
		// two transactions collide
		{fmt.Errorf("sign up: %w", &pgconn.PgError{Code: "40001"}), commands.Unavailable, "accounts cannot be reached"},
		// another request was first
		{&pgconn.PgError{Code: "23505"}, commands.Unavailable, "accounts cannot be reached"},
		// a value is missing
		{&pgconn.PgError{Code: "23502"}, commands.Internal, "the database refused"},
		// a table is missing
		{&pgconn.PgError{Code: "42P01"}, commands.Internal, "the database refused"},
	} {
		got := DatabaseError("accounts cannot be reached", c.err)
		if e, ok := errors.AsType[*commands.Error](got); !ok || e.Kind != c.kind || e.Detail != c.detail {
			t.Errorf("%v comes out as %+v", c.err, got)
		}
		if !errors.Is(got, c.err) {
			t.Errorf("%v is not the cause of %v", c.err, got)
		}
	}
}
