package http

import (
	"strconv"
	"strings"

	"flagledger/events"
)

// etag is the entity tag of a flag's version.
func etag(v events.Revision) string { return `"` + strconv.FormatUint(uint64(v), 10) + `"` }

// ifMatch reads an If-Match header into the condition that commands take: nil where there is none. Weak tags never match, as RFC 9110 has it.
func ifMatch(header string) func(events.Revision) bool {
	if header == "" {
		return nil
	}
	return func(v events.Revision) bool {
		for tag := range strings.SplitSeq(header, ",") {
			if tag = strings.TrimSpace(tag); tag == "*" || tag == etag(v) {
				return true
			}
		}
		return false
	}
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
