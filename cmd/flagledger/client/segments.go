package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"flagledger/cmd/flagledger/terminal"
)

type segmentsCommand struct {
	List    listSegmentsCommand   `cmd:"" help:"List the segments."`
	Show    showSegmentCommand    `cmd:"" help:"Print a segment, and the rules that refer to it."`
	Create  createSegmentCommand  `cmd:"" help:"Create a segment, in which nobody is at first."`
	Rules   segmentRulesCommand   `cmd:"" help:"Print the rules of a segment, or replace them."`
	Members segmentMembersCommand `cmd:"" help:"Print a list of a segment's members, or add and remove some."`
	Check   checkSegmentCommand   `cmd:"" help:"Print whether a user is in a segment, and why."`
	Forget  forgetSegmentCommand  `cmd:"" help:"Forget the members of a private segment, so that nobody can tell who they were."`
	History segmentHistoryCommand `cmd:"" help:"Print who changed a segment, when and why."`
}

type listSegmentsCommand struct {
	service
	Text *string `arg:"" optional:"" help:"Only segments with this in key or name."`
	Tag  *string `help:"Only segments with this tag."`
}

// Run prints a line for each segment.
func (c listSegmentsCommand) Run(ctx context.Context) error {
	call := func(api *Client) (*http.Response, error) {
		return api.ListSegments(ctx, &ListSegmentsParams{Q: c.Text, Tag: c.Tag})
	}
	return answer(ctx, environment{service: c.service}, "", call, func(t *terminal.Table, segments []SegmentBody) {
		t.Row("SEGMENT", "RULES", "INCLUDED", "EXCLUDED", "USED BY", "VERSION", "UPDATED", "NAME")
		for _, s := range segments {
			t.Row(s.Key, strconv.Itoa(len(s.Rules)), count(s.Counts.Included), count(s.Counts.Excluded), usedBy(s),
				count(s.Version), instant(s.UpdatedAt), s.Name)
		}
	})
}

func count(n int64) string { return strconv.FormatInt(n, 10) }

func usedBy(s SegmentBody) string {
	if s.UsedBy == nil {
		return ""
	}
	return count(*s.UsedBy)
}

// segment names a segment.
type segment struct {
	service
	Key string `arg:"" help:"Key of the segment."`
}

// segmentChange is a change of one segment.
type segmentChange struct {
	tenantChange
	Key string `arg:"" help:"Key of the segment."`
}

type showSegmentCommand struct{ segment }

// Run prints a segment. For people, it also asks who uses it.
func (c showSegmentCommand) Run(ctx context.Context) error {
	api, err := environment{service: c.service}.open(ctx, "")
	if err != nil {
		return err
	}
	s, text, err := decode[SegmentBody](api.GetSegment(ctx, c.Key, nil))
	if err != nil {
		return err
	}
	var users []SegmentUserBody
	if !c.JSON {
		if users, _, err = decode[[]SegmentUserBody](api.ListSegmentUsers(ctx, c.Key, nil)); err != nil {
			return err
		}
	}
	return c.show(text, func(t *terminal.Table) {
		s.print(t)
		if len(users) > 0 {
			t.Part()
			t.Row("USED BY", "KEY", "ENVIRONMENT", "RULE")
		}
		for _, u := range users {
			if u.SegmentKey != nil {
				t.Row("segment", *u.SegmentKey, "", u.RuleId)
				continue
			}
			t.Row("flag", *u.FlagKey, *u.Environment, u.RuleId)
		}
	})
}

// print prints a segment with its rules.
func (s SegmentBody) print(t *terminal.Table) {
	t.Row("segment", s.Key)
	t.Row("name", s.Name)
	t.Row("description", s.Description)
	t.Row("tags", strings.Join(s.Tags, ", "))
	if s.Private {
		t.Row("private", "yes")
	}
	t.Row("included", count(s.Counts.Included))
	t.Row("excluded", count(s.Counts.Excluded))
	t.Row("used by", usedBy(s))
	t.Row("version", count(s.Version))
	t.Row("created", instant(s.CreatedAt))
	t.Row("updated", instant(s.UpdatedAt))
	if len(s.Rules) > 0 {
		t.Part()
		printSegmentRules(t, s.Rules)
	}
}

func printSegmentRules(t *terminal.Table, rules []SegmentRuleBody) {
	t.Row("RULE", "CONDITIONS")
	for _, r := range rules {
		t.Row(cmp.Or(r.Name, r.Id), conditions(r.Conditions))
	}
}

type createSegmentCommand struct {
	tenantChange
	Key         string   `arg:"" help:"Key of the segment, which never changes."`
	Name        string   `placeholder:"TEXT" help:"Name; the key by default."`
	Description string   `placeholder:"TEXT" help:"Description."`
	Tags        []string `name:"tag" sep:"none" placeholder:"TAG" help:"Tag, as often as needed."`
	Private     bool     `help:"Record hashes in place of its members: they can be checked and forgotten, but not listed. This never changes."`
}

// Run creates a segment.
func (c createSegmentCommand) Run(ctx context.Context) error {
	body := CreateSegmentBody{Key: c.Key}
	if c.Name != "" {
		body.Name = &c.Name
	}
	if c.Description != "" {
		body.Description = &c.Description
	}
	if len(c.Tags) > 0 {
		body.Tags = &c.Tags
	}
	if c.Private {
		body.Private = &c.Private
	}
	call := func(api *Client) (*http.Response, error) { return api.CreateSegment(ctx, body) }
	return answer(ctx, environment{service: c.service}, c.Reason, call, func(t *terminal.Table, s SegmentBody) {
		s.print(t)
	})
}

type forgetSegmentCommand struct{ segmentChange }

// Run forgets the members of a segment and prints it.
func (c forgetSegmentCommand) Run(ctx context.Context) error {
	call := func(api *Client) (*http.Response, error) { return api.ForgetSegmentMembers(ctx, c.Key) }
	return answer(ctx, environment{service: c.service}, c.Reason, call, func(t *terminal.Table, s SegmentBody) {
		s.print(t)
	})
}

type segmentRulesCommand struct {
	segmentChange
	File string `type:"existingfile" placeholder:"FILE" help:"Replace the rules by the contents of a file, in the form that --json prints; - is standard input."`
}

// Run prints the rules of a segment, after it has replaced them by the contents of a file.
func (c segmentRulesCommand) Run(ctx context.Context) error {
	call := func(api *Client) (*http.Response, error) { return api.GetSegmentRules(ctx, c.Key, nil) }
	if c.File != "" {
		content, err := readFile(c.File)
		if err != nil {
			return err
		}
		call = func(api *Client) (*http.Response, error) {
			return api.SetSegmentRulesWithBody(ctx, c.Key, "application/json", bytes.NewReader(content))
		}
	}
	return answer(ctx, environment{service: c.service}, c.Reason, call, func(t *terminal.Table, rules SegmentRulesBody) {
		printSegmentRules(t, rules.Rules)
	})
}

type segmentMembersCommand struct {
	segmentChange
	List   string   `enum:"included,excluded" default:"included" help:"List: ${enum}; ${default} by default. Excluded users are not in the segment, whatever the rules say."`
	Add    []string `sep:"none" xor:"add" placeholder:"USER" help:"Targeting key to add, as often as needed."`
	Remove []string `sep:"none" xor:"remove" placeholder:"USER" help:"Targeting key to remove, as often as needed."`
	File   string   `type:"existingfile" xor:"add,remove" placeholder:"FILE" help:"Add the targeting keys of a CSV file with one column and no header; - is standard input."`
}

// Run prints a list of members, or changes it.
func (c segmentMembersCommand) Run(ctx context.Context) error {
	if c.File == "" && len(c.Add)+len(c.Remove) == 0 {
		call := func(api *Client) (*http.Response, error) {
			return api.ListSegmentMembers(ctx, c.Key, &ListSegmentMembersParams{List: &c.List})
		}
		return answer(ctx, environment{service: c.service}, "", call, func(t *terminal.Table, members []string) {
			for _, member := range members {
				t.Row(member)
			}
		})
	}
	api, err := environment{service: c.service}.open(ctx, c.Reason)
	if err != nil {
		return err
	}
	changed, err := c.change(ctx, api)
	if err != nil {
		return err
	}
	text, err := json.Marshal(changed)
	if err != nil {
		return err
	}
	return c.show(text, func(t *terminal.Table) {
		t.Row(fmt.Sprintf("%s, %s: %d added, %d removed, %d unchanged.", c.Key, c.List, changed.Added, changed.Removed,
			changed.Unchanged))
	})
}

// change adds and removes members. A large file takes several calls.
func (c segmentMembersCommand) change(ctx context.Context, api *Client) (sum MembersChangedBody, _ error) {
	if c.File == "" {
		changed, _, err := decode[MembersChangedBody](api.ChangeSegmentMembers(ctx, c.Key, nil,
			SegmentMembersBody{List: c.List, Add: &c.Add, Remove: &c.Remove}))
		return changed, err
	}
	text, err := readFile(c.File)
	if err != nil {
		return sum, err
	}
	params := &ChangeSegmentMembersParams{List: &c.List}
	for i, part := range splitRows(text) {
		changed, _, err := decode[MembersChangedBody](
			api.ChangeSegmentMembersWithBody(ctx, c.Key, params, "text/csv", bytes.NewReader(part)))
		if err != nil && i > 0 {
			err = fmt.Errorf("after %d rows, whose members are added: %w", i*rowsOfCall, err)
		}
		if err != nil {
			return sum, err
		}
		sum.Added += changed.Added
		sum.Removed += changed.Removed
		sum.Unchanged += changed.Unchanged
	}
	return sum, nil
}

// rowsOfCall limits the members that a call adds.
const rowsOfCall = 10_000

// splitRows splits a CSV file into parts for calls. The service says what is wrong with one that cannot be read.
func splitRows(text []byte) (parts [][]byte) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	rows := csv.NewReader(bytes.NewReader(text))
	rows.FieldsPerRecord, rows.ReuseRecord = -1, true
	begin := int64(0)
	for n := 1; ; n++ {
		if _, err := rows.Read(); err != nil {
			break
		}
		if end := rows.InputOffset(); n%rowsOfCall == 0 && end < int64(len(text)) {
			parts, begin = append(parts, text[begin:end]), end
		}
	}
	return append(parts, text[begin:])
}

type checkSegmentCommand struct {
	environment
	Segment string `arg:"" name:"key" help:"Key of the segment."`
	user
}

// Run prints whether a user is in a segment. For people, it first asks for the names of the rules.
func (c checkSegmentCommand) Run(ctx context.Context) error {
	api, err := c.open(ctx, "")
	if err != nil {
		return err
	}
	names := map[string]string{}
	if !c.JSON {
		rules, _, err := decode[SegmentRulesBody](
			api.GetSegmentRules(ctx, c.Segment, &GetSegmentRulesParams{At: c.time()}))
		if err != nil {
			return err
		}
		for _, r := range rules.Rules {
			names[r.Id] = cmp.Or(r.Name, r.Id)
		}
	}
	params := &CheckSegmentParams{At: c.time()}
	user := c.body()
	body := SegmentToCheck{Attributes: user.Attributes, TargetingKey: user.TargetingKey}
	check, answer, err := decode[SegmentCheckBody](api.CheckSegment(ctx, c.Segment, params, body))
	if err != nil {
		return err
	}
	return c.show(answer, func(t *terminal.Table) {
		t.Row("member", map[bool]string{true: "yes", false: "no"}[check.Member])
		because := "no rule matches"
		switch reason := check.Because; {
		case reason == nil:
		case reason.List != nil:
			because = "in the list " + *reason.List
		case reason.RuleId != nil:
			because = "rule " + cmp.Or(names[*reason.RuleId], *reason.RuleId)
		}
		t.Row("because", because)
		if len(check.Conditions) > 0 {
			t.Part()
			t.Row("RULE", "CONDITION")
		}
		for _, asked := range check.Conditions {
			t.Row(cmp.Or(names[asked.RuleId], asked.RuleId), verdict(AskedConditionBody{
				asked.Actual, asked.Attribute, asked.Matched, asked.Negate, asked.Op, asked.Values,
			}))
		}
	})
}

type segmentHistoryCommand struct{ segment }

// Run prints a line for each change of a segment, the newest first.
func (c segmentHistoryCommand) Run(ctx context.Context) error {
	call := func(api *Client) (*http.Response, error) { return api.GetSegmentHistory(ctx, c.Key, nil) }
	return answer(ctx, environment{service: c.service}, "", call, func(t *terminal.Table, history []SegmentHistoryEntry) {
		t.Row("VERSION", "TIME", "CHANGE", "BY", "REASON")
		for _, e := range history {
			t.Row(count(e.Version), instant(e.Timestamp), e.Action, e.UserName, e.Reason)
		}
	})
}
