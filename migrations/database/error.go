package database

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

var (
	// ErrNotFound reports that the requested thing does not exist.
	ErrNotFound = errors.New("not found")
	// ErrUnavailable reports that the tables cannot be read or written now.
	ErrUnavailable = errors.New("the database cannot be used")
)

// Error codes of Postgres for tables that are being built or rebuilt in another shape.
const (
	undefinedTable  = "42P01"
	undefinedColumn = "42703"
	undefinedSchema = "3F000"
)

// MissingTable reports whether an error means that a table or its schema is missing.
func MissingTable(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (pg.Code == undefinedTable || pg.Code == undefinedSchema)
}

// Classify turns a database error into ErrNotFound or ErrUnavailable. A statement that Postgres refuses stays an
// internal error.
func Classify(err error) error {
	if err == nil || errors.Is(err, ErrNotFound) || errors.Is(err, ErrUnavailable) {
		return err
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrNotFound
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		if MissingTable(err) || pg.Code == undefinedColumn {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		switch pg.Code[:2] {
		case "22", "23", "42":
			return err
		}
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}
