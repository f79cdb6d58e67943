package events

import (
	"iter"
	"strings"
)

// SettingEntry is an entry of a setting such as "free=16, standard=64", without the spaces around it, its name and its
// value.
type SettingEntry struct {
	Text  string // as it was written
	Name  string
	Value string // empty where there is no =
}

// SettingEntries reads the entries of a setting, which stand between commas. It leaves out empty ones.
func SettingEntries(text string) iter.Seq[SettingEntry] {
	return func(yield func(SettingEntry) bool) {
		for entry := range strings.SplitSeq(text, ",") {
			entry = strings.TrimSpace(entry)
			name, value, _ := strings.Cut(entry, "=")
			if entry != "" && !yield(SettingEntry{entry, strings.TrimSpace(name), strings.TrimSpace(value)}) {
				return
			}
		}
	}
}
