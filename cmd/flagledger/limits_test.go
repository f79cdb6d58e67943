package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/node/settings"
	"flagledger/commands"
	"flagledger/commands/billing"
	"flagledger/commands/jobs"
	"flagledger/commands/keep/inbox"
	"flagledger/commands/keep/keys"
	"flagledger/commands/keep/tours"
	"flagledger/commands/notify"
	"flagledger/commands/people"
	"flagledger/commands/writer"
	"flagledger/events"
	"flagledger/http"
	"flagledger/http/quota"
	"flagledger/projections/snapshot"
	"flagledger/projections/usage"
	"flagledger/queries"
)

var update = flag.Bool("update", false, "write the generated parts of docs/operate")

// allLimits lists the limits of all packages.
func allLimits() []events.Limit {
	return slices.Concat(
		settings.ListLimits(), node.ListLimits(), commands.ListLimits(), writer.ListLimits(), people.ListLimits(),
		billing.ListLimits(), notify.ListLimits(), inbox.ListLimits(), tours.ListLimits(), quota.ListLimits(),
		jobs.ListLimits(), http.ListLimits(), keys.ListLimits(), queries.ListLimits(), snapshot.ListLimits(),
		usage.ListLimits(),
		[]events.Limit{{
			Group: events.ConcurrencyLimits, Name: "connections", Nodes: events.EachNode, Per: "node", Beyond: "they wait",
			Value: fmt.Sprintf("%s, or open files less %d", events.CountText(mostConnections), otherFiles),
		}},
	)
}

// docs/operate/limits.md shows the limits that the code enforces. go test ./cmd/flagledger -run TestLimitsPage -update
// writes it.
func TestLimitsPage(t *testing.T) {
	t.Parallel()
	comparePage(t, "limits.md", limitsTables())
}

func limitsTables() string {
	var b strings.Builder
	b.WriteString("## By plan\n\n")
	b.WriteString("| plan | requests a minute | all flags | written a day | invitations a day |\n|---|---|---|---|---|\n")
	var plans string
	for i, terms := range events.Plans {
		plans += fmt.Sprintf("`%s`", terms.Plan)
		if i+1 < len(events.Plans) && planLimits(terms) == planLimits(events.Plans[i+1]) {
			plans += ", "
			continue
		}
		fmt.Fprintf(&b, "| %s | %s |\n", plans, planLimits(terms))
		plans = ""
	}
	for _, group := range events.LimitGroups {
		columns := "| limits | per | nodes | beyond them |\n|---|---|---|---|\n"
		if group == events.RequestLimits {
			columns = "| limits | beyond them |\n|---|---|\n"
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s", group, columns)
		writeRows(&b, group)
	}
	return b.String()
}

func planLimits(terms events.PlanTerms) string {
	return strings.Join([]string{
		events.CountText(terms.RequestsPerMinute), events.SizeText(terms.TenantFlagBytes),
		events.SizeText(quota.DailyBytes(terms.TenantFlagBytes)), events.CountText(terms.InvitationsPerDay),
	}, " | ")
}

// writeRows writes a group's limits. Limits with the same effect share a row as far as the line allows.
func writeRows(b *strings.Builder, group events.LimitGroup) {
	type row struct{ limits, rest string }
	var rows []row
	for _, l := range slices.Concat(allLimits(), silentLimits()) {
		if l.Group != group {
			continue
		}
		limit, rest := l.Name+": "+l.Text(), fmt.Sprintf(" | %s | %s | %s |", cmp.Or(l.Per, "node"), l.Nodes, beyond(l))
		if group == events.RequestLimits {
			rest = fmt.Sprintf(" | %s |", beyond(l))
		}
		i := slices.IndexFunc(rows, func(r row) bool {
			return r.rest == rest && len([]rune("| "+r.limits+" · "+limit+rest)) <= maxLine
		})
		if i < 0 {
			rows = append(rows, row{limit, rest})
		} else {
			rows[i].limits += " · " + limit
		}
	}
	for _, r := range rows {
		fmt.Fprintf(b, "| %s%s\n", r.limits, r.rest)
	}
}

// silent are the members and headers that the OpenAPI document states no length of: only commands check it.
var silent = []string{"password", "newPassword", "data", "tags", "tourKey", "X-Correlation-ID"}

// silentLimits returns the limits of silent as the page shows them.
func silentLimits() (list []events.Limit) {
	for _, l := range allLimits() {
		l.Fields = slices.DeleteFunc(slices.Clone(l.Fields), func(f string) bool { return !slices.Contains(silent, f) })
		if len(l.Fields) > 0 {
			list = append(list, events.RequestLimit("`"+strings.Join(l.Fields, "`, `")+"`", l.Text(), l.Status, ""))
		}
	}
	return list
}

// beyond describes the response beyond a limit and its other effects.
func beyond(l events.Limit) string {
	var parts []string
	if l.Status != 0 {
		parts = append(parts, strconv.Itoa(l.Status))
	}
	if l.Beyond != "" {
		parts = append(parts, l.Beyond)
	}
	return strings.Join(parts, ", ")
}

const (
	generatedFrom = "<!-- generated: begin -->\n"
	generatedTo   = "<!-- generated: end -->\n"
	maxLine       = 160
)

// comparePage compares the generated part of a page of docs/operate, or with -update writes it.
func comparePage(t *testing.T, name, want string) {
	t.Helper()
	path := filepath.Join("..", "..", "docs", "operate", name)
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := bytes.Cut(page, []byte(generatedFrom))
	got, after, ends := bytes.Cut(rest, []byte(generatedTo))
	if !begins || !ends {
		t.Fatalf("%s has no generated part", path)
	}
	want = "\n" + want + "\n"
	for line := range strings.Lines(want) {
		if len([]rune(line)) > maxLine+1 {
			t.Errorf("the line is too long: %s", line)
		}
	}
	switch {
	case string(got) == want:
	case *update:
		page = slices.Concat(before, []byte(generatedFrom+want+generatedTo), after)
		if err := os.WriteFile(path, page, 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is not what the code says; go test ./cmd/flagledger -run %s -update writes it", path, t.Name())
	}
}

// Each limit says what happens beyond it.
func TestLimitsAreWhole(t *testing.T) {
	t.Parallel()
	for _, l := range allLimits() {
		printed := l.Name != "" && slices.Contains(events.LimitGroups, l.Group)
		if !printed && (l.Group != events.FieldLimits || l.Fields == nil) || l.Text() == "0" || beyond(l) == "" {
			t.Errorf("%+v is not whole", l)
		}
	}
}

// The OpenAPI document has the limits of the code. Its tags cannot be computed.
func TestOpenAPIHasTheLimitsOfTheCode(t *testing.T) {
	t.Parallel()
	var document any
	if err := json.Unmarshal(http.Document(), &document); err != nil {
		t.Fatal(err)
	}
	limited := map[string]bool{}
	allowed := func(name string, most int) bool {
		return slices.ContainsFunc(allLimits(), func(l events.Limit) bool {
			return l.Max == most && slices.Contains(l.Fields, name)
		})
	}
	lengthOfPattern := regexp.MustCompile(`^\^\[.*\]\[.*\]\{0,(\d+)\}\$$`)
	var check func(name string, part any)
	check = func(name string, part any) {
		switch part := part.(type) {
		case []any:
			for _, element := range part {
				check(name, element)
			}
		case map[string]any:
			if _, parameter := part["in"]; parameter {
				name, _ = part["name"].(string)
			}
			for _, keyword := range []string{"maxLength", "maxItems", "maximum"} {
				most, limits := part[keyword].(float64)
				if limits && !allowed(name, int(most)) {
					t.Errorf("%s has %s %v, which is no limit of the code", name, keyword, most)
				}
				limited[name] = limited[name] || limits
			}
			if least, limits := part["minLength"].(float64); limits && least > 1 && int(least) != commands.MinPassword {
				t.Errorf("%s has minLength %v, which is no limit of the code", name, least)
			}
			if pattern, ok := part["pattern"].(string); ok {
				if found := lengthOfPattern.FindStringSubmatch(pattern); found != nil {
					rest, _ := strconv.Atoi(found[1])
					if limited[name] = true; !allowed(name, rest+1) {
						t.Errorf("%s has the pattern %s, and another limit in the code", name, pattern)
					}
				}
			}
			for key, value := range part {
				switch members, _ := value.(map[string]any); key {
				case "properties":
					for member, schema := range members {
						check(member, schema)
					}
				case "example", "examples":
				default:
					check(name, value)
				}
			}
		}
	}
	check("", document)
	for _, l := range allLimits() {
		for _, name := range l.Fields {
			if limited[name] == slices.Contains(silent, name) {
				t.Errorf("whether the document limits %s has changed", name)
			}
		}
	}
}

// handTyped is a limit in a text of the code with a typed number in place of its constant.
var handTyped = regexp.MustCompile(`["\x60][^"\x60]*(` +
	`\b(at most|up to|larger than|longer than|takes over) [0-9][0-9,]*\b[^%]|[^%][0-9]+ at most|` +
	`\b[0-9][0-9,]* (KiB|MiB|characters|bytes)\b)`)

// Texts of the service print the constant of a limit or no number.
func TestNoLimitIsTypedByHand(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"commands", "http", "queries", "projections", "events", "cmd/flagledger/node"} {
		err := filepath.WalkDir(filepath.Join("..", "..", folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() && (entry.Name() == "node_modules" || strings.HasSuffix(entry.Name(), "test")) {
				return cmp.Or(err, fs.SkipDir)
			}
			if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			source, err := os.ReadFile(path)
			for i, line := range strings.Split(string(source), "\n") {
				code, _, _ := strings.Cut(line, "//")
				if found := handTyped.FindString(code); found != "" {
					t.Errorf("%s:%d has the limit %s", path, i+1, found)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// The dashboard states the limits of the code.
func TestDashboardSaysTheLimitsOfTheCode(t *testing.T) {
	t.Parallel()
	of := func(field string) int {
		i := slices.IndexFunc(allLimits(), func(l events.Limit) bool { return slices.Contains(l.Fields, field) })
		return allLimits()[i].Max
	}
	for _, said := range []struct {
		path, pattern string
		want          int
	}{
		{"components/ReasonField.svelte", `maxlength={(\d+)}`, of("X-Change-Reason")},
		{"words/flags.ts", `at most (\d+) characters`, of("key")},
		{"words/account.ts", `At least (\d+) characters`, commands.MinPassword},
		{"words/profile.ts", `At least (\d+) characters`, commands.MinPassword},
	} {
		source, err := os.ReadFile(filepath.Join("..", "..", "http", "dashboard", "src", said.path))
		found := regexp.MustCompile(said.pattern).FindSubmatch(source)
		if err != nil || found == nil || string(found[1]) != strconv.Itoa(said.want) {
			t.Errorf("%s says %s, to be %d (%v)", said.path, found, said.want, err)
		}
	}
}
