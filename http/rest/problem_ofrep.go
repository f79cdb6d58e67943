package rest

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"flagledger/http/strictjson"
	"flagledger/projections/snapshot/evaluation"
	"flagledger/queries"
)

// ofrepErrorCode is the error code for OpenFeature's clients.
type ofrepErrorCode string

// Error codes of OFREP.
const (
	OFREPParseError          ofrepErrorCode = "PARSE_ERROR"
	OFREPInvalidContext      ofrepErrorCode = "INVALID_CONTEXT"
	ofrepTargetingKeyMissing ofrepErrorCode = "TARGETING_KEY_MISSING"
	ofrepFlagNotFound        ofrepErrorCode = "FLAG_NOT_FOUND"
	ofrepGeneral             ofrepErrorCode = "GENERAL"
)

// OFREPFailure is the error of a flag's evaluation in OFREP's format.
type OFREPFailure struct {
	Key          string         `json:"key,omitempty" doc:"The flag, if the call is for one" example:"new-checkout"`
	ErrorCode    ofrepErrorCode `json:"errorCode" enum:"PARSE_ERROR,INVALID_CONTEXT,TARGETING_KEY_MISSING,FLAG_NOT_FOUND,GENERAL" example:"TARGETING_KEY_MISSING"`
	ErrorDetails string         `json:"errorDetails" example:"targetingKey is required: the flag splits its traffic by it"`
}

// ofrepProblem is a problem with the members that OpenFeature's clients need.
type ofrepProblem struct {
	problemBody
	OFREPFailure
}

type problemBody Problem

// Schema implements huma.SchemaProvider.
func (ofrepProblem) Schema(r huma.Registry) *huma.Schema {
	return problemWith(r, OFREPFailure{})
}

// OFREPError is a problem with an OFREP error code.
type OFREPError struct {
	Code ofrepErrorCode
	*Problem
}

func (e OFREPError) Unwrap() error { return e.Problem }

// OFREPErrorOf converts an error to an OFREP error. Errors in the context are 400, as clients treat 422 as a fault of
// the service.
func OFREPErrorOf(ctx context.Context, key string, err error) OFREPError {
	if refusal, ok := errors.AsType[OFREPError](err); ok {
		return refusal
	}
	if errors.Is(err, queries.ErrNotFound) {
		return OFREPError{ofrepFlagNotFound, NewProblem(http.StatusNotFound, "there is no flag "+key)}
	}
	if missing, ok := errors.AsType[*evaluation.NoUnitError](err); ok {
		code := OFREPInvalidContext
		if missing.Attribute == "targetingKey" {
			code = ofrepTargetingKeyMissing
		}
		return OFREPError{code, NewProblem(http.StatusBadRequest, missing.Error())}
	}
	if errors.Is(err, evaluation.ErrTooLarge) {
		return OFREPError{OFREPInvalidContext, NewProblem(http.StatusBadRequest, err.Error())}
	}
	return OFREPError{ofrepGeneral, ProblemOf(ctx, err)}
}

// Of returns the failure of a flag.
func (e OFREPError) Of(key string) OFREPFailure { return OFREPFailure{key, e.Code, e.Detail} }

// WriteOFREP writes an error response.
func WriteOFREP(w http.ResponseWriter, r *http.Request, key string, err error) {
	refusal := OFREPErrorOf(r.Context(), key, err)
	refusal.begin(w, r)
	_ = strictjson.Write(w, ofrepProblem{problemBody(*refusal.Problem), refusal.Of(key)})
}
