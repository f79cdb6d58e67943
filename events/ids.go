package events

import "strings"

// CanonicalID returns an id as in facts, with UUIDs in lower case. It returns other texts unchanged.
func CanonicalID(id string) string {
	if len(id) != 36 || id[8] != '-' || id[13] != '-' || id[18] != '-' || id[23] != '-' ||
		strings.Trim(id, "0123456789abcdefABCDEF-") != "" {
		return id
	}
	return strings.ToLower(id)
}
