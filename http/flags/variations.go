package flags

import (
	"context"
	"encoding/json"
	"net/http"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/events/state"
	"flagledger/http/rest"
	"flagledger/queries"
)

type variationBody struct {
	ID          string      `json:"id" example:"0198c5a1-7d2e-7b10-9d0c-3f5f3f1f2a77"`
	Name        string      `json:"name" example:"on"`
	Value       rest.Value  `json:"value"`
	Description string      `json:"description" example:"The checkout of one page"`
	Weight      rest.Number `json:"weight" doc:"Its share of a split, relative to the other weights" example:"25"`
}

func showVariation(v events.Variation) variationBody {
	weight, _ := v.Weight.MarshalJSON() // never fails
	return variationBody{ID: v.ID, Name: v.Name, Value: rest.Value(v.Value), Description: v.Description, Weight: weight}
}

type variationOutput struct {
	rest.Changed
	ETag     string `header:"ETag" doc:"The flag's version, for If-Match"`
	Location string `header:"Location"`
	Body     variationBody
}

type newVariationBody struct {
	Name        string      `json:"name" minLength:"1" maxLength:"200" doc:"Unique in the flag" example:"on"`
	Value       rest.Value  `json:"value"`
	Description string      `json:"description,omitempty" maxLength:"2000" example:"The checkout of one page"`
	Weight      rest.Number `json:"weight,omitempty" minimum:"0" maximum:"10000" doc:"At most three decimals; the default is 0" example:"25"`
}

func (b newVariationBody) variation(ctx context.Context) commands.NewVariation {
	return commands.NewVariation{
		ID:          rest.NewID(ctx),
		Name:        b.Name,
		Value:       json.RawMessage(b.Value),
		Description: b.Description,
		Weight:      b.Weight.Weight(),
	}
}

type updateVariationBody struct {
	Name        rest.Optional[string] `json:"name,omitzero" minLength:"1" maxLength:"200" example:"on"`
	Value       rest.Value            `json:"value,omitempty"`
	Description rest.Optional[string] `json:"description,omitzero" maxLength:"2000" example:"The checkout of one page" nullable:"true" doc:"null clears it"`
	Weight      rest.Number           `json:"weight,omitempty" minimum:"0" maximum:"10000" example:"50"`
}

// VariationChange holds the parameters of every change to a variation.
type VariationChange struct {
	FlagChange
	ID string `path:"variationId" example:"0198c5a1-7d2e-7b10-9d0c-3f5f3f1f2a77"`
}

func (a *API) addVariations() {
	const tag, path = "Variations", "/api/v1/flags/{flagKey}/variations"
	get := rest.Operation("GET", path, "list-variations", tag, "A flag's variations in the order of their creation")
	get.Description = rest.HistoryText
	rest.Register(a.Core, rest.ReadFlagsAt, get,
		func(ctx context.Context, in *struct {
			FlagRead
			rest.PageInput
		}) (*rest.ListOutput[variationBody], error) {
			if then, _, asked, err := in.past(ctx, a); asked {
				return rest.ListResponse(ctx, in.PageInput, queries.ListOf(then.Variations, in.Page()), err, showVariation)
			}
			list, err := a.Queries.Variations(ctx, rest.PrincipalOf(ctx).Tenant.ID(), in.Key, in.Page())
			return rest.ListResponse(ctx, in.PageInput, list, err, showVariation)
		})
	add := rest.Operation("POST", path, "add-variation", tag, "Add a variation after the others")
	add.DefaultStatus = http.StatusCreated
	add.Description = growFlagText
	add.Errors = []int{http.StatusConflict}
	rest.Register(a.Core, rest.ChangeFlags, add, func(ctx context.Context, in *struct {
		FlagChange
		Body newVariationBody
	}) (*variationOutput, error) {
		v := in.Body.variation(ctx)
		out, err := a.writeVariation(ctx, commands.AddVariation{FlagRef: in.ref(ctx), Variation: v}, v.ID)
		if err != nil {
			return nil, err
		}
		out.Location = rest.PublicPath(ctx, "/api/v1/flags/"+in.Key+"/variations/"+v.ID)
		return out, nil
	})
	update := rest.Operation("PATCH", path+"/{variationId}", "update-variation", tag,
		"Change the sent fields of a variation")
	update.Description = growFlagText
	update.Errors = append(update.Errors, http.StatusConflict)
	rest.Register(a.Core, rest.ChangeFlags, update,
		func(ctx context.Context, in *struct {
			VariationChange
			Body updateVariationBody
		}) (*variationOutput, error) {
			update := commands.UpdateVariation{
				FlagRef:     in.ref(ctx),
				ID:          in.ID,
				Name:        in.Body.Name.Sent,
				Value:       json.RawMessage(in.Body.Value),
				Description: in.Body.Description.Sent,
			}
			if in.Body.Weight != nil {
				update.Weight = new(in.Body.Weight.Weight())
			}
			return a.writeVariation(ctx, update, in.ID)
		})
	remove := rest.Operation("DELETE", path+"/{variationId}", "remove-variation", tag,
		"Remove a variation that nothing serves and no other flag requires")
	remove.DefaultStatus = http.StatusNoContent
	remove.Errors = append(remove.Errors, http.StatusConflict)
	rest.Register(a.Core, rest.ChangeFlags, remove,
		func(ctx context.Context, in *VariationChange) (*rest.NoContent, error) {
			_, done, err := rest.Do(ctx, a.Writer, commands.RemoveVariation{
				FlagRef: in.ref(ctx), ID: in.ID, Environments: rest.PrincipalOf(ctx).Tenant.Environments(),
				Dependents: dependents(rest.PrincipalOf(ctx).Tenant, in.Key),
			})
			return &rest.NoContent{Changed: rest.ChangeHeaders(done)}, err
		})
}

func (a *API) writeVariation(
	ctx context.Context, cmd commands.Command[state.Flag], id string,
) (*variationOutput, error) {
	flag, done, err := rest.Do(ctx, a.Writer, cmd)
	if err != nil {
		return nil, err
	}
	out := &variationOutput{Changed: rest.ChangeHeaders(done), ETag: rest.ETag(flag.Version)}
	for _, v := range flag.Variations {
		if v.ID == id {
			out.Body = showVariation(v)
		}
	}
	return out, nil
}
