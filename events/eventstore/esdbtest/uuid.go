package esdbtest

import (
	"encoding/binary"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/google/uuid"
)

func fromUUID(id *shared.UUID) (u uuid.UUID) {
	s := id.GetStructured()
	if s == nil {
		return uuid.MustParse(id.GetString_())
	}
	binary.BigEndian.PutUint64(u[:8], uint64(s.MostSignificantBits))
	binary.BigEndian.PutUint64(u[8:], uint64(s.LeastSignificantBits))
	return u
}

func toUUID(u uuid.UUID) *shared.UUID {
	return &shared.UUID{Value: &shared.UUID_Structured_{Structured: &shared.UUID_Structured{
		MostSignificantBits:  int64(binary.BigEndian.Uint64(u[:8])),
		LeastSignificantBits: int64(binary.BigEndian.Uint64(u[8:])),
	}}}
}
