package client

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"strings"

	"flagledger/cmd/flagledger/terminal"
)

type prerequisitesCommand struct {
	flagChange
	File string `type:"existingfile" aliases:"set" placeholder:"FILE" help:"Replace them by the contents of a file, in the form that --json prints; - is standard input."`
}

// Run prints what a flag requires in an environment, after it has replaced it by the contents of a file. For people, it
// then asks for the names of the variations of the required flags.
func (c prerequisitesCommand) Run(ctx context.Context) error {
	api, err := c.open(ctx, c.Reason)
	if err != nil {
		return err
	}
	call := func() (*http.Response, error) { return api.GetPrerequisites(ctx, c.Key, nil) }
	if c.File != "" {
		content, err := readFile(c.File)
		if err != nil {
			return err
		}
		call = func() (*http.Response, error) {
			return api.SetPrerequisitesWithBody(ctx, c.Key, "application/json", bytes.NewReader(content))
		}
	}
	required, text, err := decode[PrerequisitesBody](call())
	if err != nil {
		return err
	}
	names := map[string]string{}
	if !c.JSON {
		for _, p := range required.Prerequisites {
			if err := addNames(ctx, api, p.FlagKey, names); err != nil {
				return err
			}
		}
	}
	return c.show(text, func(t *terminal.Table) {
		t.Row("FLAG", "MUST")
		for _, p := range required.Prerequisites {
			t.Row(p.FlagKey, must(p.Off, p.Serves, names))
		}
	})
}

// addNames adds the names of a flag's variations, by id. A flag that does not exist has none.
func addNames(ctx context.Context, api *Client, key string, names map[string]string) error {
	flag, _, err := decode[FlagDetail](api.GetFlag(ctx, key, nil))
	if hasStatus(err, http.StatusNotFound) {
		return nil
	}
	for _, v := range flag.Variations {
		names[v.Id] = v.Name
	}
	return err
}

// must says what a prerequisite demands of the other flag.
func must(off *bool, serves *[]ServedBody, names map[string]string) string {
	if off != nil && *off {
		return "be off"
	}
	var values []string
	if serves != nil {
		for _, s := range *serves {
			switch {
			case s.VariationId != nil:
				values = append(values, cmp.Or(names[*s.VariationId], *s.VariationId))
			case s.Value != nil:
				values = append(values, brief(*s.Value))
			}
		}
	}
	return "serve " + strings.Join(values, " or ")
}

// printDependents prints the flags that require a flag, in all environments.
func printDependents(t *terminal.Table, f FlagDetail, dependents []DependentBody) {
	if len(dependents) == 0 {
		return
	}
	names := map[string]string{}
	for _, v := range f.Variations {
		names[v.Id] = v.Name
	}
	t.Part()
	t.Row("REQUIRED BY", "ENVIRONMENT", "IT MUST")
	for _, d := range dependents {
		t.Row(d.FlagKey, d.Environment, must(d.Off, d.Serves, names))
	}
}
