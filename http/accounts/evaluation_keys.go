package accounts

import (
	"context"
	"net/http"
	"time"

	"flagledger/commands"
	"flagledger/commands/tenants"
	"flagledger/commands/writer"
	"flagledger/events"
	"flagledger/events/rules"
	"flagledger/events/state"
	"flagledger/http/rest"
	"flagledger/queries"
)

// EvaluationKeyBody is an evaluation key in answers.
type EvaluationKeyBody struct {
	ID            string            `json:"id" example:"0198c5a1-c2f8-7d14-9b3e-5a7d9f1c3e60"`
	Name          string            `json:"name" example:"Web shop"`
	Kind          string            `json:"kind" enum:"browser,server" example:"browser"`
	Environment   string            `json:"environment" example:"production"`
	Origins       []string          `json:"origins" doc:"Web pages that may use a browser key; empty for any" example:"[\"https://shop.example.com\"]"`
	Signed        bool              `json:"signed" doc:"Contexts must be signed" example:"false"`
	Edge          bool              `json:"edge" doc:"A server key of an edge" example:"false"`
	CreatedAt     rest.RecordedTime `json:"createdAt"`
	CreatedBy     string            `json:"createdBy" doc:"A person's id" example:"0198c5a0-d3c0-7e19-a5b7-3c9d8f6e4a02"`
	ExpiresAt     *rest.Timestamp   `json:"expiresAt" nullable:"true" doc:"null for never"`
	Key           string            `json:"key,omitempty" doc:"Of a server key only when it is created or rotated" example:"pk_3h5k7m2n4p6q8r9s2t4v6w8x3z"`
	SigningSecret string            `json:"signingSecret,omitempty" doc:"Only of a signed key, when it is created or rotated: the key of HS256, as UTF-8" example:"Vv3mQd8Zr1kX5pT9yB2nL7cF4hJ6wS0aVv3mQd8Zr1k"`
}

type listedKeyBody struct {
	EvaluationKeyBody
	LastUsedAt *rest.Timestamp `json:"lastUsedAt" nullable:"true" doc:"The last evaluation that is still known; null if there is none"`
}

func showEvaluationKey(k events.EvaluationKeyAdded, createdAt time.Time, createdBy string) EvaluationKeyBody {
	body := EvaluationKeyBody{
		ID: k.KeyID, Name: k.Name, Kind: string(k.Kind), Environment: k.Environment.Name, Origins: k.Origins,
		Signed: k.SigningID != "", Edge: k.Edge, CreatedAt: rest.RecordedTime(createdAt), CreatedBy: createdBy, Key: k.Key,
	}
	if body.Origins == nil {
		body.Origins = []string{}
	}
	if !k.ExpiresAt.IsZero() {
		body.ExpiresAt = (*rest.Timestamp)(&k.ExpiresAt)
	}
	return body
}

func showListedKey(k queries.EvaluationKey) listedKeyBody {
	return listedKeyBody{showEvaluationKey(k.Key, k.CreatedAt, k.CreatedBy), (*rest.Timestamp)(k.LastUsedAt)}
}

type listedKeyOutput struct {
	Body listedKeyBody
}

type evaluationKeyOutput struct {
	rest.Changed
	Location string `header:"Location"`
	Body     EvaluationKeyBody
}

type createEvaluationKeyBody struct {
	Name        string   `json:"name" minLength:"1" maxLength:"200" example:"Web shop"`
	Kind        string   `json:"kind" enum:"browser,server" doc:"A browser key is public and sees flags with clientSide alone; a server key is secret" example:"browser"`
	Environment string   `json:"environment" example:"production"`
	Origins     []string `json:"origins,omitempty" maxItems:"20" doc:"Web pages that may use a browser key: https://shop.example.com, https://*.example.com, http://localhost:*; by default any" example:"[\"https://shop.example.com\"]"`
	Signed      bool     `json:"signed,omitempty" doc:"Contexts must come as a JWT in X-Flag-Context; for a browser key" example:"false"`
	Edge        bool     `json:"edge,omitempty" doc:"For an edge; for a server key" example:"false"`
	ExpiresAt   *string  `json:"expiresAt,omitempty" nullable:"true" format:"date-time" minLength:"1" doc:"When the key stops working; never by default" example:"2126-03-14T15:09:26.535Z"`
}

type changeEvaluationKeyBody struct {
	Name      *string               `json:"name,omitempty" minLength:"1" maxLength:"200" example:"Web shop"`
	Origins   *[]string             `json:"origins,omitempty" maxItems:"20" example:"[\"https://*.example.com\"]"`
	ExpiresAt rest.Optional[string] `json:"expiresAt,omitzero" nullable:"true" format:"date-time" minLength:"1" doc:"null for never" example:"2126-03-14T15:09:26.535Z"`
}

type rotateEvaluationKeyBody struct {
	EndNow bool `json:"endNow,omitempty" doc:"Ends the previous key or secret, and all earlier ones, at once" example:"false"`
}

// EvaluationKeyChange holds the parameters of every change to an evaluation key.
type EvaluationKeyChange struct {
	rest.TenantInput
	rest.ChangeInput
	ID string `path:"keyId" example:"0198c5a1-c2f8-7d14-9b3e-5a7d9f1c3e60"`
}

func (c EvaluationKeyChange) ref(ctx context.Context) commands.EvaluationKeyRef {
	return commands.EvaluationKeyRef{TenantRef: tenantRef(ctx), ID: c.ID}
}

func (a *API) addEvaluationKeys() {
	const tag, path = "Evaluation keys", "/api/v1/evaluation-keys"
	rest.Register(a.Core, rest.Access{Who: rest.Viewer}, rest.Operation("GET", path, "list-evaluation-keys", tag,
		"The tenant's evaluation keys"),
		func(ctx context.Context, in *struct {
			rest.TenantInput
			rest.PageInput
		}) (*rest.ListOutput[listedKeyBody], error) {
			list, err := a.Queries.EvaluationKeys(ctx, rest.PrincipalOf(ctx).Tenant.ID(), in.Page())
			return rest.ListResponse(ctx, in.PageInput, list, err, showListedKey)
		})
	get := rest.Operation("GET", path+"/{keyId}", "get-evaluation-key", tag, "One evaluation key")
	get.Errors = []int{http.StatusNotFound}
	rest.Register(a.Core, rest.Access{Who: rest.Viewer}, get,
		func(ctx context.Context, in *struct {
			rest.TenantInput
			ID string `path:"keyId" example:"0198c5a1-c2f8-7d14-9b3e-5a7d9f1c3e60"`
		}) (*listedKeyOutput, error) {
			key, err := a.Queries.EvaluationKey(ctx, rest.PrincipalOf(ctx).Tenant.ID(), in.ID)
			return &listedKeyOutput{Body: showListedKey(key)}, err
		})
	a.addEvaluationKeyCreation(tag, path)
	change := rest.Operation("PATCH", path+"/{keyId}", "change-evaluation-key", tag, "Change an evaluation key")
	change.Errors = []int{http.StatusNotFound}
	rest.Register(a.Core, rest.Access{Who: rest.Admin}, change, func(ctx context.Context, in *struct {
		EvaluationKeyChange
		Body changeEvaluationKeyBody
	}) (*evaluationKeyOutput, error) {
		cmd := commands.ChangeEvaluationKey{
			EvaluationKeyRef: in.ref(ctx), Name: in.Body.Name, Origins: in.Body.Origins, Now: a.Now(),
		}
		var err error
		if sent := in.Body.ExpiresAt; sent.Sent != nil {
			cmd.ExpiresAt = new(time.Time)
			if !sent.Null {
				*cmd.ExpiresAt, err = expiry(*sent.Sent)
			}
		}
		if err != nil {
			return nil, rest.CheckCommand(ctx, a.Writer, map[string]string{"expiresAt": err.Error()}, cmd)
		}
		tenant, done, err := rest.Do(ctx, a.Writer, cmd)
		return showChangedKey(tenant.EvaluationKeys[in.ID], done), err
	})
	rotate := rest.Operation("POST", path+"/{keyId}/rotate", "rotate-evaluation-key", tag,
		"Replace an evaluation key, or the signing secret of a signed one")
	rotate.Description = "The previous one is valid for another " + events.PeriodText(commands.SecretOverlap) +
		". A signed key stays the same, and gets a new signingSecret."
	rotate.Errors = []int{http.StatusNotFound, http.StatusConflict}
	rest.Register(a.Core, rest.Access{Who: rest.Admin}, rotate, func(ctx context.Context, in *struct {
		EvaluationKeyChange
		Body *rotateEvaluationKeyBody `required:"false"`
	}) (*evaluationKeyOutput, error) {
		cmd := commands.RotateEvaluationKey{
			EvaluationKeyRef: in.ref(ctx), SigningID: rest.NewID(ctx), EndNow: in.Body != nil && in.Body.EndNow, Now: a.Now(),
		}
		return a.issueKey(ctx, cmd.EvaluationKeyRef, func(random string) commands.Command[state.Tenant] {
			cmd.Random = random
			return cmd
		})
	})
	remove := rest.Operation("DELETE", path+"/{keyId}", "delete-evaluation-key", tag,
		"Delete an evaluation key; it stops working at once")
	remove.DefaultStatus = http.StatusNoContent
	remove.Errors = []int{http.StatusNotFound}
	rest.Register(a.Core, rest.Access{Who: rest.Admin}, remove,
		func(ctx context.Context, in *EvaluationKeyChange) (*rest.NoContent, error) {
			_, done, err := rest.Do(ctx, a.Writer, commands.RemoveEvaluationKey{EvaluationKeyRef: in.ref(ctx)})
			return &rest.NoContent{Changed: rest.ChangeHeaders(done)}, err
		})
}

func (a *API) addEvaluationKeyCreation(tag, path string) {
	create := rest.Operation("POST", path, "create-evaluation-key", tag,
		"Create an evaluation key, with which applications evaluate flags in one environment")
	create.Description = "Send the key as `Authorization: Bearer` or `X-API-Key`. It works while all databases are down. A " +
		"browser key evaluates flags with `clientSide` alone, and its answers name no rules."
	create.DefaultStatus = http.StatusCreated
	create.Errors = []int{http.StatusConflict}
	rest.Register(a.Core, rest.Access{Who: rest.Admin}, create, func(ctx context.Context, in *struct {
		rest.TenantInput
		rest.ChangeInput
		Body createEvaluationKeyBody
	}) (*evaluationKeyOutput, error) {
		cmd := commands.CreateEvaluationKey{
			TenantRef: tenantRef(ctx), ID: rest.NewID(ctx), Name: in.Body.Name, Kind: events.KeyKind(in.Body.Kind),
			Environment: in.Body.Environment, Origins: in.Body.Origins, Edge: in.Body.Edge, Now: a.Now(),
		}
		if in.Body.Signed {
			cmd.SigningID = rest.NewID(ctx)
		}
		if sent := in.Body.ExpiresAt; sent != nil {
			var err error
			if cmd.ExpiresAt, err = expiry(*sent); err != nil {
				return nil, rest.CheckCommand(ctx, a.Writer, map[string]string{"expiresAt": err.Error()}, cmd)
			}
		}
		ref := commands.EvaluationKeyRef{TenantRef: cmd.TenantRef, ID: cmd.ID}
		out, err := a.issueKey(ctx, ref, func(random string) commands.Command[state.Tenant] {
			cmd.Random = random
			return cmd
		})
		if err != nil {
			return nil, err
		}
		out.Location = rest.PublicPath(ctx, path+"/"+cmd.ID)
		return out, nil
	})
}

// expiry reads the end of a key.
func expiry(text string) (time.Time, error) {
	at, readable := rules.ParseTime(text)
	if !readable || at.IsZero() || at.Year() < 1 || at.Year() > 9999 {
		return at, queries.ErrNotTime
	}
	return at.UTC().Truncate(time.Millisecond), nil
}

// issueKey returns an evaluation key with its new text and signing secret. They cannot be shown again.
func (a *API) issueKey(
	ctx context.Context, ref commands.EvaluationKeyRef, command func(random string) commands.Command[state.Tenant],
) (*evaluationKeyOutput, error) {
	// a key whose response was lost cannot be shown again, only rotated
	if err := rest.RequestOf(ctx).ReplayRefusal; err != nil {
		return nil, err
	}
	key, text, done, err := tenants.IssueKey(ctx, a.Writer, rest.CallMetadata(ctx), rest.Runner[state.Tenant](a.Core), ref,
		a.Now(), command)
	if err != nil {
		return nil, err
	}
	out := showChangedKey(key, done)
	out.Body.Key = text
	if key.Signed() {
		secrets, err := a.Secret.SigningSecrets(key.SigningID)
		if err != nil {
			return nil, err
		}
		out.Body.SigningSecret = secrets[0]
	}
	return out, nil
}

func showChangedKey(key state.EvaluationKey, done writer.Done) *evaluationKeyOutput {
	return &evaluationKeyOutput{
		Changed: rest.ChangeHeaders(done),
		Body:    showEvaluationKey(key.EvaluationKeyAdded, key.CreatedAt, key.CreatedBy),
	}
}
