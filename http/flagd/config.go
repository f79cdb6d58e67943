package flagd

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"flagledger/events"
	"flagledger/http/rest"
	definitions "flagledger/projections/snapshot/flagd"
	"flagledger/queries"
)

// documentBody is a document as flagd's file sources read it.
type documentBody []byte

// MarshalJSON implements json.Marshaler.
func (d documentBody) MarshalJSON() ([]byte, error) { return d, nil }

// Schema implements huma.SchemaProvider.
func (documentBody) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Type: huma.TypeObject, Required: []string{"$schema", "flags", "metadata"}, AdditionalProperties: false,
		Properties: map[string]*huma.Schema{
			"$schema":  {Type: huma.TypeString, Description: "The schema of flagd's documents"},
			"flags":    {Type: huma.TypeObject, Description: "The definitions by key", AdditionalProperties: true},
			"metadata": {Type: huma.TypeObject, Description: "`flagSetId`, and `remoteOnly`: how many flags are left out", AdditionalProperties: true},
		},
	}
}

type configOutput struct{ Body documentBody }

// addConfig adds the operation that exports the flags of an environment.
func (a *API) addConfig() {
	op := rest.Operation("GET", "/api/v1/config", "export-config", "Flags", "The flags of an environment as a file")
	op.Description = configText
	op.Errors = []int{http.StatusNotFound}
	op = rest.WithExamples(op, nil, map[string]any{
		"$schema": "https://flagd.dev/schema/v0/flags.json",
		"flags": map[string]any{"new-checkout": map[string]any{
			"state": "ENABLED", "variants": map[string]any{"on": true}, "defaultVariant": "on",
			"metadata": map[string]any{"flagVersion": 7},
		}},
		"metadata": map[string]any{"flagSetId": "0198c5a0-d3c2-7e19-9a75-2b8f6c4d1e05/production", "remoteOnly": 1},
	})
	access := rest.Access{Who: rest.Viewer, Scope: events.FlagsRead}
	rest.Register(a.Core, access, op, func(ctx context.Context, in *struct {
		rest.TenantInput
		Format      string `query:"format" required:"true" enum:"flagd" doc:"The format of the file"`
		Environment string `query:"environment" doc:"The default is production" example:"staging"`
		ProjectID   string `query:"projectId" doc:"Only the flags of this project"`
	}) (*configOutput, error) {
		p := rest.PrincipalOf(ctx)
		if err := p.SelectEnvironment(in.Environment); err != nil {
			return nil, err
		}
		set := definitions.Set{
			TenantID: p.Tenant.ID(), Environment: p.Environment.EnvironmentRef,
			ProjectID: events.CanonicalID(in.ProjectID),
		}
		if _, found := p.Tenant.ProjectFlags(set.ProjectID); set.ProjectID != "" && !found {
			return nil, queries.ErrNotFound
		}
		slot, err := a.EnterPast(ctx) // it takes a processor rather than the database
		if err != nil {
			return nil, err
		}
		defer slot.Leave()
		text, _, err := set.Document(flagsOf(p.Tenant), definitions.Strict)
		return &configOutput{documentBody(text)}, err
	})
}

const configText = "`format=flagd`: definitions that flagd and the OpenFeature providers for flagd evaluate in process, from " +
	"a file. Archived flags are left out, and so are flags that flagd cannot express: see `inProcess` of a flag. It shows " +
	"rules and salts. Providers that are connected to the service get changes too: see docs/connect.md of the repository."
