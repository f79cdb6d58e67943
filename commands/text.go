package commands

import (
	"strings"
	"unicode/utf8"
)

// CheckText checks a text's length in characters, and that it has no NUL, which Postgres cannot store.
func CheckText(wrong FieldErrors, field, text string, shortest, longest int) {
	n := utf8.RuneCountInString(text)
	wrong.Check(n >= shortest, field, "is required and must not be empty")
	wrong.Check(n <= longest, field, "must have at most %d characters", longest)
	wrong.Check(!strings.ContainsRune(text, 0), field, "must not contain the character NUL")
}

// list joins words with commas.
func list[T ~string](words []T) string {
	var b strings.Builder
	for i, word := range words {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(word))
	}
	return b.String()
}
