// Package keep holds what the owners of the tables in schema keep share.
package keep

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"

	"flagledger/commands"
	"flagledger/migrations/database"
)

// DatabaseError turns a database error into a *commands.Error, Unavailable if the database cannot be reached or cannot
// work now. It returns nil and an error with a *commands.Error unchanged.
func DatabaseError(detail string, err error) error {
	if err == nil {
		return nil
	}
	if _, refused := errors.AsType[*commands.Error](err); refused {
		return err
	}
	if db, ok := errors.AsType[*pgconn.PgError](err); ok && !passing(db.Code) && !database.IsReadOnlyError(err) {
		return &commands.Error{Detail: "the database refused", Err: err}
	}
	if db, ok := errors.AsType[*pgconn.PgError](err); ok && db.Code == diskFull {
		detail = "the disk of the database is full: " + detail
	}
	return &commands.Error{Kind: commands.Unavailable, Detail: detail, Err: err}
}

const diskFull = "53100"

// passing reports whether a retry of the statement may succeed. Codes:
// https://www.postgresql.org/docs/current/errcodes-appendix.html.
func passing(code string) bool {
	if code == "23505" { // unique_violation: another request was first
		return true
	}
	switch code[:min(2, len(code))] {
	case "08", "25", "40", "53", "57": // connection, state (read-only), rollback, resources, operator
		return true
	}
	return false
}
