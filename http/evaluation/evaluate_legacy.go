package evaluation

import (
	"errors"
	"net/http"

	"flagledger/events"
	"flagledger/http/rest"
	"flagledger/projections/snapshot/evaluation"
)

type legacyContextBody struct {
	UserID      string         `json:"userId,omitempty" doc:"The old name of targetingKey" example:"user-42"`
	Attributes  map[string]any `json:"attributes,omitempty" example:"{\"plan\":\"pro\"}"`
	Environment string         `json:"environment,omitempty" doc:"Overrides X-Environment; production without either" example:"production"`
}

func readLegacyEvaluate(e *evaluationRequest) error {
	return e.Object(func(name string) error {
		switch name {
		case "userId":
			return e.String(&e.TargetingKey)
		case "targetingKey":
			return e.Refuse("unexpected property")
		default:
			return e.member(name)
		}
	})
}

// legacyEvaluate evaluates a flag for a userId, the old name of the targetingKey.
func (a *API) legacyEvaluate(w http.ResponseWriter, r *http.Request) {
	err := a.evaluateOne(w, r, legacyEvaluateAccess, readLegacyEvaluate, a.legacyEvaluateSchema)
	if err == nil {
		return
	}
	p := rest.ProblemOf(r.Context(), err)
	if missing, ok := errors.AsType[*evaluation.NoUnitError](err); ok && missing.Attribute == events.TargetingKey {
		p.Errors = map[string]string{"userId": p.Errors[events.TargetingKey]}
	}
	rest.WriteProblem(w, r, p)
}
