package http

import (
	"strconv"
	"strings"

	"flagledger/events"
)

// etag is the entity tag of a flag's version.
func etag(v events.Revision) string { return `"` + strconv.FormatUint(uint64(v), 10) + `"` }

// ifMatch reads an If-Match header into the versions that commands take: nil, which is any, where there is none or it has a *. Tags that are weak, which
// never match as RFC 9110 has it, or of no version are left out.
func ifMatch(header string) []events.Revision {
	if header == "" {
		return nil
	}
	versions := []events.Revision{}
	for tag := range strings.SplitSeq(header, ",") {
		tag = strings.TrimSpace(tag)
		if tag == "*" {
			return nil
		}
		if v, err := strconv.ParseUint(strings.Trim(tag, `"`), 10, 64); err == nil && tag == etag(events.Revision(v)) {
			versions = append(versions, events.Revision(v))
		}
	}
	return versions
}

// noneMatch reports whether an If-None-Match header names a tag. Weak tags match too, as RFC 9110 has it.
func noneMatch(header []string, tag string) bool {
	for _, line := range header {
		for sent := range strings.SplitSeq(line, ",") {
			if sent = strings.TrimSpace(sent); sent == "*" || strings.TrimPrefix(sent, "W/") == tag {
				return true
			}
		}
	}
	return false
}
