package http

import (
	"context"
	"encoding/json"
	"net/http"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/events/state"
	"flagledger/queries"
)

type variationBody struct {
	ID          string `json:"id" example:"0198c5a1-7d2e-7b10-9d0c-3f5f3f1f2a77"`
	Name        string `json:"name" example:"on"`
	Value       value  `json:"value"`
	Description string `json:"description" example:"The checkout of one page"`
	Weight      number `json:"weight" doc:"Its share of a split, relative to the other weights" example:"25"`
}

func showVariation(v events.Variation) variationBody {
	weight, _ := v.Weight.MarshalJSON() // never fails
	return variationBody{ID: v.ID, Name: v.Name, Value: value(v.Value), Description: v.Description, Weight: weight}
}

type variationOutput struct {
	Changed
	ETag     string `header:"ETag" doc:"The flag's version, for If-Match"`
	Location string `header:"Location"`
	Body     variationBody
}

type newVariationBody struct {
	Name        string `json:"name" minLength:"1" maxLength:"200" doc:"Unique in the flag" example:"on"`
	Value       value  `json:"value"`
	Description string `json:"description,omitempty" maxLength:"2000" example:"The checkout of one page"`
	Weight      number `json:"weight,omitempty" minimum:"0" maximum:"10000" doc:"At most three decimals; the default is 0" example:"25"`
}

func (b newVariationBody) variation(ctx context.Context) commands.NewVariation {
	return commands.NewVariation{
		ID:          newID(ctx),
		Name:        b.Name,
		Value:       json.RawMessage(b.Value),
		Description: b.Description,
		Weight:      b.Weight.weight(),
	}
}

// weight parses a weight. It returns -1 for an invalid one, which commands refuse.
func (n number) weight() events.Weight {
	if n == nil {
		return 0
	}
	w, err := events.ParseWeight(n)
	if err != nil {
		return -1
	}
	return w
}

type updateVariationBody struct {
	Name        optional[string] `json:"name,omitzero" minLength:"1" maxLength:"200" example:"on"`
	Value       value            `json:"value,omitempty"`
	Description optional[string] `json:"description,omitzero" maxLength:"2000" example:"The checkout of one page" nullable:"true" doc:"null clears it"`
	Weight      number           `json:"weight,omitempty" minimum:"0" maximum:"10000" example:"50"`
}

// VariationChange holds the parameters of every change to a variation.
type VariationChange struct {
	FlagChange
	ID string `path:"variationId" example:"0198c5a1-7d2e-7b10-9d0c-3f5f3f1f2a77"`
}

func (a *API) addVariations() {
	const tag, path = "Variations", "/api/v1/flags/{flagKey}/variations"
	get := operation("GET", path, "list-variations", tag, "A flag's variations in the order of their creation")
	get.Description = pastRead
	register(a, readFlagsAt, get,
		func(ctx context.Context, in *struct {
			FlagRead
			PageInput
		}) (*listOutput[variationBody], error) {
			if then, _, asked, err := in.past(ctx, a); asked {
				return listResponse(ctx, in.PageInput, queries.ListOf(then.Variations, in.page()), err, showVariation)
			}
			list, err := a.Queries.Variations(ctx, principalOf(ctx).tenant.ID(), in.Key, in.page())
			return listResponse(ctx, in.PageInput, list, err, showVariation)
		})
	add := operation("POST", path, "add-variation", tag, "Add a variation after the others")
	add.DefaultStatus = http.StatusCreated
	add.Description = growFlagText
	add.Errors = []int{http.StatusConflict}
	register(a, changeFlags, add, func(ctx context.Context, in *struct {
		FlagChange
		Body newVariationBody
	}) (*variationOutput, error) {
		v := in.Body.variation(ctx)
		out, err := a.writeVariation(ctx, commands.AddVariation{FlagRef: in.ref(ctx), Variation: v}, v.ID)
		if err != nil {
			return nil, err
		}
		out.Location = publicPath(ctx, "/api/v1/flags/"+in.Key+"/variations/"+v.ID)
		return out, nil
	})
	update := operation("PATCH", path+"/{variationId}", "update-variation", tag, "Change the sent fields of a variation")
	update.Description = growFlagText
	update.Errors = append(update.Errors, http.StatusConflict)
	register(a, changeFlags, update,
		func(ctx context.Context, in *struct {
			VariationChange
			Body updateVariationBody
		}) (*variationOutput, error) {
			update := commands.UpdateVariation{
				FlagRef:     in.ref(ctx),
				ID:          in.ID,
				Name:        in.Body.Name.sent,
				Value:       json.RawMessage(in.Body.Value),
				Description: in.Body.Description.sent,
			}
			if in.Body.Weight != nil {
				update.Weight = new(in.Body.Weight.weight())
			}
			return a.writeVariation(ctx, update, in.ID)
		})
	remove := operation("DELETE", path+"/{variationId}", "remove-variation", tag,
		"Remove a variation that no rule and no fallthrough serves")
	remove.DefaultStatus = http.StatusNoContent
	remove.Errors = append(remove.Errors, http.StatusConflict)
	register(a, changeFlags, remove, func(ctx context.Context, in *VariationChange) (*noContent, error) {
		_, done, err := do(ctx, a.Writer, commands.RemoveVariation{
			FlagRef: in.ref(ctx), ID: in.ID, Environments: principalOf(ctx).tenant.Environments(),
		})
		return &noContent{changeHeaders(done)}, err
	})
}

func (a *API) writeVariation(
	ctx context.Context, cmd commands.Command[state.Flag], id string,
) (*variationOutput, error) {
	flag, done, err := do(ctx, a.Writer, cmd)
	if err != nil {
		return nil, err
	}
	out := &variationOutput{Changed: changeHeaders(done), ETag: etag(flag.Version)}
	for _, v := range flag.Variations {
		if v.ID == id {
			out.Body = showVariation(v)
		}
	}
	return out, nil
}
