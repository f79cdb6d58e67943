package nodetest

import (
	"fmt"
	"strings"

	"github.com/google/uuid"

	"flagledger/events"
)

// CreateFlag creates a flag with the given fields, by default of the type boolean.
func (c *Client) CreateFlag(key string, fields map[string]any) map[string]any {
	c.Service.T.Helper()
	body := map[string]any{"key": key, "type": "boolean"}
	for name, value := range fields {
		body[name] = value
	}
	return c.Call("POST", "/api/v1/flags", body).Want(201).Object()
}

// CreateEnabledFlag creates a flag that is on in production.
func (c *Client) CreateEnabledFlag(key string, fields map[string]any) map[string]any {
	c.Service.T.Helper()
	flag := c.CreateFlag(key, fields)
	c.Call("POST", FlagPath(key, "/enable"), nil).Want(200)
	return flag
}

// SwitchOften appends n facts to a flag's existing stream, which switch it on and off in another tenant's environment.
// It returns when the read models show them.
func (c *Client) SwitchOften(key string, n int) {
	c.Service.T.Helper()
	environment := events.EnvironmentRef{ID: "e", Name: "qa"}
	batch := make([]events.Event, n)
	for i := range batch {
		batch[i] = events.Event{
			ID:       uuid.New(),
			Metadata: events.Metadata{Time: c.Service.Config.Now().UTC()},
			Fact:     events.FlagEnabled{Environment: environment},
		}
		if i%2 == 1 {
			batch[i].Fact = events.FlagDisabled{Environment: environment}
		}
	}
	if _, err := c.Service.Store().Append(c.Service.T.Context(), events.FlagStream(c.Tenant, key), 1, batch); err != nil {
		c.Service.T.Fatal(err)
	}
	c.Service.Eventually("the list shows it", func() bool {
		return c.Call("GET", "/api/v1/flags?q="+key, nil).Want(200).List()[0]["version"] == float64(1+n)
	})
}

// FlagPath returns the path of a flag or below it: FlagPath("k", "/history").
func FlagPath(key string, rest ...string) string {
	return fmt.Sprintf("/api/v1/flags/%s%s", key, strings.Join(rest, ""))
}

// Evaluate evaluates a flag.
func (c *Client) Evaluate(key string, body any, headers ...string) *Answer {
	c.Service.T.Helper()
	return c.Call("POST", FlagPath(key, "/evaluate"), body, headers...)
}

// FlagKeys lists the keys of the flags that match a query.
func (c *Client) FlagKeys(query string) []any {
	c.Service.T.Helper()
	return Column(c.Call("GET", "/api/v1/flags"+query, nil).Want(200).List(), "key")
}

// History reads the history of a flag.
func (c *Client) History(key, query string) []map[string]any {
	c.Service.T.Helper()
	return c.Call("GET", FlagPath(key, "/history", query), nil).Want(200).List()
}

// AddVariation adds a variation.
func (c *Client) AddVariation(key, body string) *Answer {
	c.Service.T.Helper()
	return c.Call("POST", FlagPath(key, "/variations"), body).Want(201)
}

// Variations lists the variations of a flag.
func (c *Client) Variations(key string) []map[string]any {
	c.Service.T.Helper()
	return c.Call("GET", FlagPath(key, "/variations"), nil).Want(200).List()
}

// SetRules replaces the rules of a flag.
func (c *Client) SetRules(key, body string, headers ...string) *Answer {
	c.Service.T.Helper()
	return c.Call("PUT", FlagPath(key, "/rules"), body, headers...)
}

// SetFallthrough sets what is served if no rule matches.
func (c *Client) SetFallthrough(key, body string, headers ...string) *Answer {
	c.Service.T.Helper()
	return c.Call("PUT", FlagPath(key, "/fallthrough"), body, headers...)
}

// Rules reads the rules of a flag.
func (c *Client) Rules(key string, headers ...string) *Answer {
	c.Service.T.Helper()
	return c.Call("GET", FlagPath(key, "/rules"), nil, headers...).Want(200)
}

// TwoVariations creates a text flag with two variations and returns their ids.
func (c *Client) TwoVariations(key string) (a, b string) {
	c.Service.T.Helper()
	c.CreateFlag(key, map[string]any{"type": "string"})
	id := func(body string) string { return c.AddVariation(key, body).Object()["id"].(string) }
	return id(`{"name":"a","value":"A"}`), id(`{"name":"b","value":"B"}`)
}

// CreateProject creates a project.
func (c *Client) CreateProject(name string) (id, path string) {
	c.Service.T.Helper()
	id = c.Call("POST", "/api/v1/projects", map[string]string{"name": name}).Want(201).Object()["id"].(string)
	return id, "/api/v1/projects/" + id
}

// ProjectFlagsPath returns the path of a project's flags, or of one of them.
func ProjectFlagsPath(project string, rest ...string) string {
	return "/api/v1/flags/projects/" + project + "/flags" + strings.Join(rest, "")
}
