package main

import (
	"fmt"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
)

// docs/operate/settings.md shows the settings as the code describes them.
// go test ./cmd/flagledger -run TestSettingsPage -update writes it.
func TestSettingsPage(t *testing.T) {
	t.Parallel()
	comparePage(t, "settings.md", settingsTables())
}

func settingsTables() string {
	var groups []string
	for _, group := range settings.List() {
		var b strings.Builder
		page := strings.ToUpper(group.Page[:1]) + strings.ReplaceAll(strings.TrimSuffix(group.Page[1:], ".md"), "-", " ")
		fmt.Fprintf(&b, "## %s\n\nSee also [%s](%s).\n\n", group.Name, page, group.Page)
		b.WriteString("| setting | default | meaning |\n|---|---|---|\n")
		for _, s := range group.Settings {
			value := ""
			switch {
			case len(s.Default) > 70:
				value = "[by plan](limits.md#by-plan)"
			case strings.Contains(s.Default, " ") || strings.Contains(s.Default, "'"):
				value = s.Default
			case s.Default != "":
				value = "`" + strings.ReplaceAll(s.Default, ",", "`, `") + "`"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", s.Name, value, s.Meaning)
		}
		groups = append(groups, b.String())
	}
	return strings.Join(groups, "\n")
}

// flagledger serve --help shows each setting with its default, in lines of a usual terminal.
func TestServeHelpShowsTheSettings(t *testing.T) {
	t.Parallel()
	help := run(nodetest.Build(t), nil, "serve", "--help").stdout
	for _, group := range settings.List() {
		for _, s := range group.Settings {
			if !strings.Contains(help, s.Name+"\n") || !strings.Contains(help, "Default: "+s.Default) {
				t.Errorf("the help lacks %s with its default %s", s.Name, s.Default)
			}
		}
	}
	if !strings.Contains(help, "Usage: flagledger serve") {
		t.Errorf("the help is\n%s", help)
	}
}
