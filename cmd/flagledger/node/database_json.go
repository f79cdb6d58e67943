package node

import (
	"bytes"
	"encoding/json"

	"github.com/jackc/pgx/v5/pgtype"
)

// registerJSON sets how a connection reads and writes JSON.
func registerJSON(types *pgtype.Map) {
	types.RegisterType(&pgtype.Type{Name: "json", OID: pgtype.JSONOID, Codec: &pgtype.JSONCodec{Marshal: json.Marshal, Unmarshal: unmarshalTrusted}})
	types.RegisterType(&pgtype.Type{Name: "jsonb", OID: pgtype.JSONBOID, Codec: &pgtype.JSONBCodec{Marshal: json.Marshal, Unmarshal: unmarshalTrusted}})
}

// unmarshalTrusted is json.Unmarshal, but for raw JSON, which Postgres has checked: checking it again was half of what a list of large values cost.
func unmarshalTrusted(data []byte, v any) error {
	if raw, ok := v.(*json.RawMessage); ok {
		*raw = bytes.Clone(data)
		return nil
	}
	return json.Unmarshal(data, v)
}
