package commands

import (
	"crypto/rand"

	"github.com/google/uuid"
)

// NewSalt returns 128 random bits for bucketing, as text.
func NewSalt() string { return rand.Text() }

// NewID returns a unique id. Ids of later calls sort after earlier ones.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }
