package commands

import (
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// MaxPassword is the longest password, in bytes.
const MaxPassword = 1024

// MinPassword is the shortest password, in characters.
const MinPassword = 8

// NormalPassword returns the composed form (NFC) of a password for storing and comparing, because keyboards encode the
// same letters differently.
func NormalPassword(password string) string { return norm.NFC.String(password) }

// CheckPassword notes a password that is too short or too long.
func (f FieldErrors) CheckPassword(field, password string) {
	f.Check(utf8.RuneCountInString(NormalPassword(password)) >= MinPassword, field, "must be at least %d characters",
		MinPassword)
	f.Check(len(password) <= MaxPassword, field, "must be at most %d bytes", MaxPassword)
}
