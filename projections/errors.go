package projections

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// Error codes of Postgres. The live projector may lock its tables, by preparing statements on them, before its
// checkpoint: then Postgres ends one of the two, which begins again.
const (
	lockTimeout   = "55P03"
	queryCanceled = "57014" // also by statement_timeout
	deadlock      = "40P01"
)

// contended reports whether another was in the way, so that a further attempt helps.
func contended(err error) bool {
	switch errorCode(err) {
	case lockTimeout, queryCanceled, deadlock:
		return true
	}
	return false
}

// errorCode is the code of an error of Postgres, empty for another.
func errorCode(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code
	}
	return ""
}

// Error codes of Postgres where the tables of a read model cannot be reached.
const (
	undefinedTable        = "42P01"
	undefinedSchema       = "3F000"
	insufficientPrivilege = "42501"
)

// missingTable reports whether an error is that a table, or its schema, is not there.
func missingTable(err error) bool {
	code := errorCode(err)
	return code == undefinedTable || code == undefinedSchema
}

// inapplicable reports whether an error lies in what was applied, so that trying again would not help. A read model
// whose tables are gone is no fault of an event.
func inapplicable(err error) bool {
	if errors.Is(err, errNack) {
		return true
	}
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return false
	}
	if missingTable(err) || pg.Code == insufficientPrivilege {
		return false
	}
	switch pg.Code[:2] {
	case "22", "23", "42", "54":
		// data, integrity constraint, syntax or access rule, a limit such as the size of an index entry
		return true
	}
	return false
}
