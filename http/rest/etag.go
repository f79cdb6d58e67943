package rest

import (
	"strconv"
	"strings"

	"flagledger/events"
)

// ETag returns the entity tag of a flag's version.
func ETag(v events.Revision) string { return `"` + strconv.FormatUint(uint64(v), 10) + `"` }

// IfMatch returns the versions that an If-Match header allows; nil allows any. The pattern of FlagChange checks its
// format.
func IfMatch(header string) []events.Revision {
	if header == "" || header == "*" {
		return nil
	}
	versions := []events.Revision{}
	for tag := range strings.SplitSeq(header, ",") {
		text := strings.Trim(originalTag(tag), `"`)
		if v, err := strconv.ParseUint(text, 10, 64); err == nil && text == strconv.FormatUint(v, 10) {
			versions = append(versions, events.Revision(v))
		}
	}
	return versions
}

// NoneMatch reports whether an If-None-Match header names a tag.
func NoneMatch(header []string, tag string) bool {
	for _, line := range header {
		for sent := range strings.SplitSeq(line, ",") {
			if strings.TrimSpace(sent) == "*" || originalTag(sent) == tag {
				return true
			}
		}
	}
	return false
}

// originalTag restores a tag that a compressing proxy changed: nginx turns "5" into W/"5", Apache into "5-gzip". The
// service's own tags have no hyphen.
func originalTag(tag string) string {
	tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/")
	if version, _, changed := strings.Cut(tag, "-"); changed {
		return version + `"`
	}
	return tag
}
