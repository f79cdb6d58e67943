package http

import (
	"strconv"
	"strings"

	"flagledger/events"
)

// etag returns the entity tag of a flag's version.
func etag(v events.Revision) string { return `"` + strconv.FormatUint(uint64(v), 10) + `"` }

// ifMatch returns the versions that a If-Match header allows; nil allows any. FlagChange checks its form.
func ifMatch(header string) []events.Revision {
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

// noneMatch reports whether an If-None-Match header names a tag.
func noneMatch(header []string, tag string) bool {
	for _, line := range header {
		for sent := range strings.SplitSeq(line, ",") {
			if strings.TrimSpace(sent) == "*" || originalTag(sent) == tag {
				return true
			}
		}
	}
	return false
}

// originalTag undoes what proxies that compress do to a tag: nginx makes "5" W/"5", Apache makes it "5-gzip". The tags
// of this service have no hyphen.
func originalTag(tag string) string {
	tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/")
	if version, _, changed := strings.Cut(tag, "-"); changed {
		return version + `"`
	}
	return tag
}
