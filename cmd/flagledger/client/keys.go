package client

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"flagledger/cmd/flagledger/terminal"
)

type keysCommand struct {
	List   listKeysCommand  `cmd:"" help:"List the evaluation keys of the tenant."`
	Create createKeyCommand `cmd:"" help:"Create an evaluation key, and print it."`
	Rotate rotateKeyCommand `cmd:"" help:"Replace an evaluation key, or the signing secret of a signed one, and print the new one."`
	Delete deleteKeyCommand `cmd:"" help:"Delete an evaluation key, which stops working at once."`
}

type listKeysCommand struct{ service }

// Run prints a line for each key.
func (c listKeysCommand) Run(ctx context.Context) error {
	call := func(api *Client) (*http.Response, error) { return api.ListEvaluationKeys(ctx, nil) }
	return answer(ctx, environment{service: c.service}, "", call, func(t *terminal.Table, keys []ListedKeyBody) {
		t.Row("NAME", "KIND", "ENVIRONMENT", "ORIGINS", "LAST USED", "EXPIRES", "ID", "KEY")
		for _, k := range keys {
			t.Row(k.Name, kindOfKey(k.Kind, k.Signed, k.Edge), k.Environment, strings.Join(k.Origins, ", "),
				instantOrNone(k.LastUsedAt), instantOrNone(k.ExpiresAt), k.Id, text(k.Key))
		}
	})
}

func kindOfKey(kind string, signed, edge bool) string {
	if signed {
		kind += ", signed"
	}
	if edge {
		kind += ", edge"
	}
	return kind
}

func instantOrNone(t *time.Time) string {
	if t == nil {
		return ""
	}
	return instant(*t)
}

// tenantChange is a change of what belongs to a tenant.
type tenantChange struct {
	service
	Reason string `short:"m" placeholder:"REASON" help:"Why, for the audit trail."`
}

type createKeyCommand struct {
	tenantChange
	Name    string    `arg:"" help:"Name of the key, for people."`
	Kind    string    `required:"" enum:"browser,server" help:"Kind: ${enum}. A browser key is public and sees only the flags for browsers; a server key is secret."`
	Env     string    `placeholder:"NAME" default:"production" help:"Environment in which the key evaluates; ${default} by default."`
	Origins []string  `name:"origin" sep:"none" placeholder:"ORIGIN" help:"Origin of web pages that may use a browser key, as often as needed; any by default."`
	Signed  bool      `help:"A browser key whose contexts must be signed."`
	Edge    bool      `help:"A server key for an edge."`
	Expires time.Time `type:"time" help:"Time at which the key stops working, of RFC 3339; never by default."`
}

// Run creates a key and prints it.
func (c createKeyCommand) Run(ctx context.Context) error {
	body := CreateEvaluationKeyBody{Name: c.Name, Kind: c.Kind, Environment: c.Env}
	if len(c.Origins) > 0 {
		body.Origins = &c.Origins
	}
	if c.Signed {
		body.Signed = &c.Signed
	}
	if c.Edge {
		body.Edge = &c.Edge
	}
	if !c.Expires.IsZero() {
		body.ExpiresAt = &c.Expires
	}
	call := func(api *Client) (*http.Response, error) { return api.CreateEvaluationKey(ctx, body) }
	return answer(ctx, environment{service: c.service}, c.Reason, call, func(t *terminal.Table, k EvaluationKeyBody) {
		k.print(t)
	})
}

// print prints a key that was created or rotated, with what is shown this once.
func (k EvaluationKeyBody) print(t *terminal.Table) {
	t.Row("key", text(k.Key))
	if k.SigningSecret != nil {
		t.Row("signing secret", *k.SigningSecret)
	}
	t.Row("id", k.Id)
	t.Row("name", k.Name)
	t.Row("kind", kindOfKey(k.Kind, k.Signed, k.Edge))
	t.Row("environment", k.Environment)
	t.Row("origins", strings.Join(k.Origins, ", "))
	t.Row("expires", instantOrNone(k.ExpiresAt))
	t.Part()
	switch {
	case k.SigningSecret != nil:
		t.Row("The signing secret is shown only now. Store it where your servers read secrets.")
	case k.Kind == "server":
		t.Row("The key is shown only now. Store it where your servers read secrets.")
	default:
		t.Row("The key is public: it may stand in a web page or an app.")
	}
}

// keyChange is a change of one key.
type keyChange struct {
	tenantChange
	Key string `arg:"" help:"Id or name of the key."`
}

// find returns a client and the key that the command is about.
func (c keyChange) find(ctx context.Context) (api *Client, found ListedKeyBody, err error) {
	api, err = environment{service: c.service}.open(ctx, c.Reason)
	if err != nil {
		return nil, found, err
	}
	keys, _, err := decode[[]ListedKeyBody](api.ListEvaluationKeys(ctx, nil))
	if err != nil {
		return nil, found, err
	}
	named := 0
	for _, k := range keys {
		if strings.EqualFold(k.Id, c.Key) {
			return api, k, nil
		}
		if k.Name == c.Key {
			found = k
			named++
		}
	}
	switch named {
	case 0:
		err = fmt.Errorf("no evaluation key has the id or the name %q", c.Key)
	case 1:
	default:
		err = fmt.Errorf("%d evaluation keys have the name %q; use the id that flagledger keys list prints", named, c.Key)
	}
	return api, found, err
}

type rotateKeyCommand struct {
	keyChange
	EndNow bool `help:"End the previous key or secret, and all earlier ones, at once."`
}

// Run rotates a key and prints what replaces it.
func (c rotateKeyCommand) Run(ctx context.Context) error {
	api, key, err := c.find(ctx)
	if err != nil {
		return err
	}
	rotated, text, err := decode[EvaluationKeyBody](
		api.RotateEvaluationKey(ctx, key.Id, RotateEvaluationKeyBody{EndNow: &c.EndNow}))
	if err != nil {
		return err
	}
	return c.show(text, rotated.print)
}

type deleteKeyCommand struct{ keyChange }

// Run deletes a key.
func (c deleteKeyCommand) Run(ctx context.Context) error {
	api, key, err := c.find(ctx)
	if err != nil {
		return err
	}
	if _, err := read(api.DeleteEvaluationKey(ctx, key.Id)); err != nil || c.JSON {
		return err
	}
	return c.show(nil, func(t *terminal.Table) { t.Row(key.Name + " is deleted.") })
}
