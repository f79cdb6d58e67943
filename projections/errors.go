package projections

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// Error codes of Postgres for conflicts. Preparing a statement may lock tables before the checkpoint; Postgres then
// cancels one of the two transactions, which is retried.
const (
	lockTimeout   = "55P03"
	queryCanceled = "57014" // also by statement_timeout
	deadlock      = "40P01"
)

// contended reports whether another transaction caused an error, so that a retry helps.
func contended(err error) bool {
	switch errorCode(err) {
	case lockTimeout, queryCanceled, deadlock:
		return true
	}
	return false
}

// errorCode returns the code of a Postgres error; empty for other errors.
func errorCode(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code
	}
	return ""
}

// Error codes of Postgres for missing tables.
const (
	undefinedTable        = "42P01"
	undefinedSchema       = "3F000"
	insufficientPrivilege = "42501"
)

// missingTable reports whether an error means that a table or its schema is missing.
func missingTable(err error) bool {
	code := errorCode(err)
	return code == undefinedTable || code == undefinedSchema
}

// inapplicable reports whether the event caused an error, so that a retry does not help. Missing tables are not the
// event's fault.
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
		// Data, integrity constraint, syntax or access rule, or a limit such as the size of an index entry.
		return true
	}
	return false
}
