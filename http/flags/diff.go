package flags

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"

	"github.com/wI2L/jsondiff"

	"flagledger/http/rest"
	"flagledger/http/strictjson"
	"flagledger/queries"
)

type changeBody struct {
	Field       string     `json:"field" doc:"As in the history" example:"name"`
	Environment *string    `json:"environment" nullable:"true" doc:"null for the whole flag" example:"production"`
	From        rest.Value `json:"from" example:"\"Checkout\""`
	To          rest.Value `json:"to" example:"\"New checkout\""`
}

type diffBody struct {
	From    uint64       `json:"from" doc:"The flag's version at that time" example:"3"`
	To      uint64       `json:"to" example:"7"`
	Changes []changeBody `json:"changes"`
	Patch   []patchBody  `json:"patch" doc:"RFC 6902: turns the flag at from, as /versions/{version} shows it, into the flag at to. A patch longer than the flag replaces it as a whole"`
}

type patchBody struct {
	Op    string     `json:"op" enum:"add,remove,replace,move,copy,test" example:"replace"`
	Path  string     `json:"path" example:"/name"`
	From  string     `json:"from,omitzero" example:"/tags/0"`
	Value rest.Value `json:"value,omitzero" example:"\"New checkout\""`
}

func (a *API) addDiff() {
	diff := rest.Operation("GET", "/api/v1/flags/{flagKey}/diff", "compare-flag-versions", "Flags",
		"What changed of a flag between two versions or times")
	diff.Description = "The answer is 404 if the flag did not exist at one of them, and names which."
	rest.Register(a.Core, rest.ReadFlags, diff,
		func(ctx context.Context, in *struct {
			VersionsPath
			From string `query:"from" required:"true" doc:"A version, or an RFC 3339 time that is past by the store's clock" example:"3"`
			To   string `query:"to" required:"true" doc:"A version, or an RFC 3339 time that is past by the store's clock" example:"7"`
		}) (*struct{ Body diffBody }, error) {
			wrong := map[string]string{}
			read := func(name, text string) queries.Moment {
				m, err := queries.ParseMoment(text, a.Now())
				if err != nil {
					wrong[name] = err.Error()
				}
				return m
			}
			ends := [2]struct {
				name string
				queries.Moment
			}{{"from", read("from", in.From)}, {"to", read("to", in.To)}}
			if len(wrong) > 0 {
				return nil, rest.Invalid(wrong)
			}
			for _, end := range ends {
				switch err := a.Queries.WaitUntilCurrent(ctx, end.At, "tenant."); {
				case errors.Is(err, queries.ErrFuture):
					wrong[end.name] = queries.ErrFuture.Error()
				case err != nil:
					return nil, err
				}
			}
			if len(wrong) > 0 {
				return nil, rest.Invalid(wrong)
			}
			slot, err := a.EnterPast(ctx)
			if err != nil {
				return nil, err
			}
			defer slot.Leave()
			var flags [2]*wholeFlag
			for i, end := range ends {
				_, flags[i], err = a.wholeFlagAt(ctx, in.Key, end.Moment)
				if errors.Is(err, queries.ErrNotFound) || err == nil && flags[i] == nil {
					return nil, rest.NewProblem(http.StatusNotFound, "the flag did not exist at `"+end.name+"`")
				}
				if err != nil {
					return nil, err
				}
			}
			body, err := compareFlags(*flags[0], *flags[1])
			return &struct{ Body diffBody }{body}, err
		})
}

// smallPatch is the size above which a patch that is longer than the flag replaces the whole flag. Shifting a list of
// thousands of values would need a step with a long path for each.
const smallPatch = 64 << 10

// compareFlags returns the differences between two versions.
func compareFlags(before, after wholeFlag) (body diffBody, err error) {
	body = diffBody{From: before.Version, To: after.Version, Changes: []changeBody{}, Patch: []patchBody{}}
	texts := [2][]byte{encodeJSON(before), encodeJSON(after)}
	patch, err := jsondiff.CompareJSON(texts[0], texts[1], jsondiff.UnmarshalFunc(unmarshalExactly))
	if err != nil {
		return body, err
	}
	written, err := json.Marshal(patch)
	switch {
	case err != nil || len(patch) == 0:
	case len(written) > max(smallPatch, len(texts[1])):
		body.Patch = []patchBody{{Op: "replace", Value: texts[1]}}
	default:
		err = strictjson.Read(written, &body.Patch)
	}
	var fields [2]map[string]json.RawMessage
	for i, f := range []FlagFields{before.FlagFields, after.FlagFields} {
		if err := json.Unmarshal(encodeJSON(f), &fields[i]); err != nil {
			return body, err
		}
		for _, always := range []string{"version", "createdAt", "updatedAt"} { // differ in any two versions
			delete(fields[i], always)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fields[0])) {
		body.add(name, nil, rest.Value(fields[0][name]), rest.Value(fields[1][name]))
	}
	body.compareLists("variations", nil, byID(before.Variations, variationID), byID(after.Variations, variationID))
	names := maps.Clone(before.Environments)
	maps.Copy(names, after.Environments)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		from, to := before.Environments[name], after.Environments[name]
		body.add("enabled", &name, from.Enabled, to.Enabled)
		body.compareLists("rules", &name, byID(from.Rules, ruleID), byID(to.Rules, ruleID))
		body.add("fallthrough", &name, from.Fallthrough, to.Fallthrough)
	}
	return body, err
}

// add adds a field if its values differ.
func (d *diffBody) add(field string, environment *string, from, to any) {
	if a, b := encodeJSON(from), encodeJSON(to); !bytes.Equal(a, b) {
		d.Changes = append(d.Changes, changeBody{field, environment, a, b})
	}
}

// listOf indexes a list by id and preserves its order.
type listOf struct {
	ids []string
	by  map[string]any
}

func byID[T any](list []T, id func(T) string) listOf {
	l := listOf{ids: []string{}, by: map[string]any{}}
	for _, element := range list {
		l.ids = append(l.ids, id(element))
		l.by[id(element)] = element
	}
	return l
}

func variationID(v variationBody) string { return v.ID }

func ruleID(r rest.RuleBody) string { return r.ID }

// compareLists adds each added, removed or changed element as a whole, and the list of ids if it differs.
func (d *diffBody) compareLists(field string, environment *string, from, to listOf) {
	for _, id := range from.ids {
		d.add(field+"."+id, environment, from.by[id], to.by[id])
	}
	for _, id := range to.ids {
		if from.by[id] == nil {
			d.add(field+"."+id, environment, nil, to.by[id])
		}
	}
	d.add(field+".order", environment, from.ids, to.ids)
}

// unmarshalExactly preserves the spelling of numbers.
func unmarshalExactly(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(v)
}
