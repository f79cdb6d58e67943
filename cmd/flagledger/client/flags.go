package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	"flagledger/cmd/flagledger/terminal"
)

type flagsCommand struct {
	List          listCommand          `cmd:"" help:"List the flags."`
	Show          showCommand          `cmd:"" help:"Print a flag with its variations."`
	Create        createCommand        `cmd:"" help:"Create a flag, which is off everywhere at first."`
	Enable        enableCommand        `cmd:"" help:"Turn a flag on in an environment."`
	Disable       disableCommand       `cmd:"" help:"Turn a flag off in an environment."`
	Rules         rulesCommand         `cmd:"" help:"Print the rules of a flag in an environment, or replace them."`
	Prerequisites prerequisitesCommand `cmd:"" help:"Print what a flag requires of others in an environment, or replace it."`
	History       historyCommand       `cmd:"" help:"Print who changed a flag, when and why."`
	Explain       explainCommand       `cmd:"" help:"Print what a flag serves to a user, and each step that decided it."`
	Diff          diffCommand          `cmd:"" help:"Print what changed between two versions of a flag."`
	Revert        revertCommand        `cmd:"" help:"Bring a flag back to an earlier version."`
	Watch         watchCommand         `cmd:"" help:"Print changes of flags as they happen, until interrupted."`
}

type listCommand struct {
	environment
	Words []string `arg:"" optional:"" help:"Only flags with each of these in key, name, description or a tag."`
	Owner *string  `placeholder:"ID" help:"Only flags of this person, or of me."`
}

// Run prints a line for each flag.
func (c listCommand) Run(ctx context.Context) error {
	params := &ListFlagsParams{Owner: c.Owner}
	if len(c.Words) > 0 {
		params.Q = new(strings.Join(c.Words, " "))
	}
	call := func(api *Client) (*http.Response, error) { return api.ListFlags(ctx, params) }
	return answer(ctx, c.environment, "", call, func(t *terminal.Table, flags []FlagBody) {
		t.Row("FLAG", "TYPE", strings.ToUpper(c.name()), "STATUS", "VERSION", "UPDATED", "NAME")
		for _, f := range flags {
			t.Row(f.Key, f.Type, onOff(f.Enabled), f.Status, strconv.FormatInt(f.Version, 10), instant(f.UpdatedAt), f.Name)
		}
	})
}

// name returns the name of the environment.
func (e environment) name() string { return cmp.Or(e.Env, "production") }

type showCommand struct {
	environment
	Key string `arg:"" help:"Key of the flag."`
}

// Run prints a flag. For people, it also asks which flags require it.
func (c showCommand) Run(ctx context.Context) error {
	api, err := c.open(ctx, "")
	if err != nil {
		return err
	}
	f, text, err := decode[FlagDetail](api.GetFlag(ctx, c.Key, nil))
	if err != nil {
		return err
	}
	var dependents []DependentBody
	if !c.JSON {
		if dependents, _, err = decode[[]DependentBody](api.ListDependents(ctx, c.Key, nil)); err != nil {
			return err
		}
	}
	return c.show(text, func(t *terminal.Table) {
		c.fill(t, f)
		printDependents(t, f, dependents)
	})
}

// fill prints a flag with its variations.
func (e environment) fill(t *terminal.Table, f FlagDetail) {
	t.Row("flag", f.Key)
	t.Row("name", f.Name)
	t.Row("type", f.Type)
	t.Row("status", f.Status)
	t.Row("in "+e.name(), onOff(f.Enabled))
	t.Row("default", string(f.DefaultValue))
	if f.OffServes == "code" {
		t.Row("while off", "the code's own default")
	}
	t.Row("description", f.Description)
	t.Row("tags", strings.Join(f.Tags, ", "))
	t.Row("project", text(f.ProjectId))
	t.Row("owner", text(f.Owner))
	for _, link := range f.Links {
		t.Row("link", link.Title+" "+link.Url)
	}
	if f.ClientSide {
		t.Row("browsers", "see it")
	}
	t.Row("lifecycle", text(f.Lifecycle))
	t.Row("version", strconv.FormatInt(f.Version, 10))
	t.Row("created", instant(f.CreatedAt))
	t.Row("updated", instant(f.UpdatedAt))
	if len(f.Variations) > 0 {
		t.Part()
		t.Row("VARIATION", "WEIGHT", "VALUE")
	}
	for _, v := range f.Variations {
		t.Row(v.Name, v.Weight.String(), string(v.Value))
	}
}

type createCommand struct {
	change
	Key     string  `arg:"" help:"Key of the flag, which never changes."`
	Type    string  `enum:"boolean,string,number,json" default:"boolean" help:"Type of the values: ${enum}; ${default} by default."`
	Default *string `placeholder:"VALUE" help:"What is served while the flag is off; false, an empty text, 0 or {} by default."`
	Owner   *string `placeholder:"ID" help:"The person who is responsible for the flag, a member."`
	Client  bool    `name:"client-side" help:"Let browsers see the flag. Everything that it serves is public then."`
}

// Run creates a flag.
func (c createCommand) Run(ctx context.Context) error {
	body := CreateFlagBody{Key: c.Key, Type: c.Type, Owner: c.Owner}
	if c.Client {
		body.ClientSide = &c.Client
	}
	if c.Default != nil {
		value := json.RawMessage(*c.Default)
		if c.Type == "string" {
			value, _ = json.Marshal(*c.Default) // never fails
		} else if !json.Valid(value) {
			return fmt.Errorf("--default must be JSON of the type %s", c.Type)
		}
		body.DefaultValue = &value
	}
	call := func(api *Client) (*http.Response, error) { return api.CreateFlag(ctx, body) }
	return answer(ctx, c.environment, c.Reason, call, c.fill)
}

// flagChange is a change of one flag.
type flagChange struct {
	change
	Key string `arg:"" help:"Key of the flag."`
}

type enableCommand struct{ flagChange }

// Run turns a flag on.
func (c enableCommand) Run(ctx context.Context) error {
	call := func(api *Client) (*http.Response, error) { return api.EnableFlag(ctx, c.Key) }
	return answer(ctx, c.environment, c.Reason, call, func(t *terminal.Table, _ Success) {
		t.Row(c.Key + " is on in " + c.name() + ".")
	})
}

type disableCommand struct{ flagChange }

// Run turns a flag off.
func (c disableCommand) Run(ctx context.Context) error {
	call := func(api *Client) (*http.Response, error) { return api.DisableFlag(ctx, c.Key) }
	return answer(ctx, c.environment, c.Reason, call, func(t *terminal.Table, _ Success) {
		t.Row(c.Key + " is off in " + c.name() + ".")
	})
}

type rulesCommand struct {
	flagChange
	File string `type:"existingfile" placeholder:"FILE" help:"Replace the rules by the contents of a file, in the form that --json prints; - is standard input."`
}

// Run prints the rules of a flag, after it has replaced them by the contents of a file. For people, it first asks for
// the names of the variations that they serve.
func (c rulesCommand) Run(ctx context.Context) error {
	names := map[string]string{}
	if !c.JSON {
		api, err := c.open(ctx, "")
		if err != nil {
			return err
		}
		flag, _, err := decode[FlagDetail](api.GetFlag(ctx, c.Key, nil))
		if err != nil {
			return err
		}
		for _, v := range flag.Variations {
			names[v.Id] = v.Name
		}
	}
	call := func(api *Client) (*http.Response, error) { return api.GetRules(ctx, c.Key, nil) }
	if c.File != "" {
		content, err := readFile(c.File)
		if err != nil {
			return err
		}
		call = func(api *Client) (*http.Response, error) {
			return api.SetRulesWithBody(ctx, c.Key, "application/json", bytes.NewReader(content))
		}
	}
	return answer(ctx, c.environment, c.Reason, call, func(t *terminal.Table, rules RulesBody) {
		t.Row("RULE", "CONDITIONS", "SERVES")
		for _, r := range rules.Rules {
			t.Row(cmp.Or(r.Name, r.Id), conditions(r.Conditions), served(r.Serve, names))
		}
		if rules.Fallthrough != nil {
			t.Row("else", "", served(*rules.Fallthrough, names))
		}
	})
}

// readFile reads a file, or standard input for -.
func readFile(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(os.Stdin)
	}
	return os.ReadFile(name)
}

// served is what a rule serves, in words.
func served(s ServeBody, names map[string]string) string {
	switch {
	case s.VariationId != nil:
		return cmp.Or(names[*s.VariationId], *s.VariationId)
	case s.Rollout != nil:
		var shares []string
		for _, share := range *s.Rollout {
			shares = append(shares, cmp.Or(names[share.VariationId], share.VariationId)+" "+share.Weight.String())
		}
		return strings.Join(shares, " / ") + " by " + cmp.Or(text(s.BucketBy), "targetingKey")
	case s.Value != nil:
		return brief(*s.Value)
	}
	return ""
}

type historyCommand struct {
	service
	Key string `arg:"" help:"Key of the flag."`
}

// Run prints a line for each change of a flag, the newest first.
func (c historyCommand) Run(ctx context.Context) error {
	call := func(api *Client) (*http.Response, error) { return api.GetFlagHistory(ctx, c.Key, nil) }
	return answer(ctx, environment{service: c.service}, "", call, func(t *terminal.Table, history []HistoryEntry) {
		t.Row("VERSION", "TIME", "CHANGE", "ENVIRONMENT", "BY", "REASON")
		for _, e := range history {
			t.Row(strconv.FormatInt(e.Version, 10), instant(e.Timestamp), e.Action, text(e.Environment), e.UserName, e.Reason)
		}
	})
}

type diffCommand struct {
	service
	Key  string `arg:"" help:"Key of the flag."`
	From string `required:"" placeholder:"VERSION" help:"Version, or time of RFC 3339."`
	To   string `required:"" placeholder:"VERSION" help:"Version, or time of RFC 3339."`
}

// Run prints a line for each field that differs.
func (c diffCommand) Run(ctx context.Context) error {
	call := func(api *Client) (*http.Response, error) {
		return api.CompareFlagVersions(ctx, c.Key, &CompareFlagVersionsParams{From: c.From, To: c.To})
	}
	return answer(ctx, environment{service: c.service}, "", call, func(t *terminal.Table, diff DiffBody) {
		t.Row("FIELD", "ENVIRONMENT", fmt.Sprintf("VERSION %d", diff.From), fmt.Sprintf("VERSION %d", diff.To))
		for _, change := range diff.Changes {
			t.Row(change.Field, text(change.Environment), brief(change.From), brief(change.To))
		}
	})
}

type revertCommand struct {
	flagChange
	Version int64 `required:"" placeholder:"N" help:"Version to bring back."`
}

// Run brings a flag back to a version.
func (c revertCommand) Run(ctx context.Context) error {
	call := func(api *Client) (*http.Response, error) {
		return api.RevertFlag(ctx, c.Key, RevertBody{Version: &c.Version})
	}
	return answer(ctx, c.environment, c.Reason, call, c.fill)
}
