package evaluation

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"flagledger/events"
	"flagledger/events/state"
	"flagledger/http/rest"
	"flagledger/projections/snapshot/evaluation"
	"flagledger/projections/snapshot/flagd"
	"flagledger/projections/usage"
)

// Reports counts what is reported. The meter of usage implements it.
type Reports interface {
	// Report counts a report once. It returns false for one that was taken before.
	Report(ctx context.Context, tenantID, caller, reportID string, counts []usage.Reported) (bool, error)
}

// reportAccess admits who may evaluate, but for browser keys: anyone has these.
var reportAccess = rest.Access{Who: rest.Viewer, Scope: events.FlagsEvaluate}

// AdmitReporter admits the caller of a report of usage. Its error refuses the call.
func (a *API) AdmitReporter(r *http.Request) (*rest.Principal, error) {
	p, err := a.Admit(r, reportAccess, "")
	if err == nil {
		err = checkReporter(p)
	}
	return p, err
}

func checkReporter(p *rest.Principal) error {
	if p.Machine == nil {
		return rest.NewProblem(http.StatusForbidden, "usage is reported by machines and server keys")
	}
	return nil
}

// countReport counts a report, while it holds a slot of the database: reports of a tenant wait for each other, and may
// not take all connections.
func (a *API) countReport(
	ctx context.Context, p *rest.Principal, reportID string, counts []usage.Reported,
) (bool, error) {
	slot, err := a.EnterQueue(ctx, a.Queues.Database, p)
	if err != nil {
		return false, err
	}
	defer slot.Leave()
	return a.Reports.Report(ctx, p.Tenant.ID(), p.Machine.ClientID, reportID, counts)
}

// reportReader finds what the counts of a report are of. What a flag cannot serve now counts as the rest, so that
// callers cannot fill the database with values.
type reportReader struct {
	*rest.Principal
	now     time.Time
	flags   map[string]*reportedFlag
	unknown []string // keys, in the order of the report
}

func newReportReader(p *rest.Principal, now time.Time) *reportReader {
	return &reportReader{Principal: p, now: now, flags: map[string]*reportedFlag{}, unknown: []string{}}
}

// hour returns the hour that a time counts in, and false if it is more than a day ago or ahead. Clocks differ: what is
// ahead counts in the running hour.
func (r *reportReader) hour(at time.Time) (time.Time, bool) {
	hour := at.UTC().Truncate(time.Hour)
	known := !at.After(r.now.Add(usage.ReportAge)) && !hour.Add(time.Hour).Before(r.now.Add(-usage.ReportAge))
	if running := r.now.UTC().Truncate(time.Hour); hour.After(running) {
		hour = running
	}
	return hour, known
}

// environmentID returns the id of an environment that the caller may report of; an empty name is the caller's own.
func (r *reportReader) environmentID(name string) (string, error) {
	in := rest.Principal{Credential: r.Credential, Tenant: r.Tenant}
	if err := in.SelectEnvironment(name); err != nil {
		return "", err
	}
	return in.Environment.ID, nil
}

// reportedFlag finds what a flag has served.
type reportedFlag struct {
	*state.Flag
	usage    *usage.Flag
	byValue  map[string]evaluation.Result          // by canonical values; made when the first is asked for
	variants map[string]map[string]json.RawMessage // of flagd, by environment
}

// flag returns a flag of the tenant, nil for one that does not exist.
func (r *reportReader) flag(key string) *reportedFlag {
	if f, ok := r.flags[key]; ok {
		return f
	}
	r.flags[key] = nil
	found, ok := r.Tenant.Flag(key)
	if !ok {
		r.unknown = append(r.unknown, key)
		return nil
	}
	r.flags[key] = &reportedFlag{
		Flag: found.State(), usage: found.Usage(), variants: map[string]map[string]json.RawMessage{},
	}
	return r.flags[key]
}

// served returns what the flag has served: a variation by its id or its name, a variant of flagd, a value, or one of
// the rest.
func (f *reportedFlag) served(environmentID, variation string, value []byte) evaluation.Result {
	if variation != "" {
		if i := slices.IndexFunc(f.Variations, func(v events.Variation) bool {
			return v.ID == variation || v.Name == variation
		}); i >= 0 {
			return servedVariation(&f.Variations[i])
		}
	}
	if variation != "" && value == nil {
		value = f.variant(environmentID, variation)
	}
	if f.byValue == nil {
		f.listValues()
	}
	if r, ok := f.byValue[canonical(value)]; ok {
		return r
	}
	return evaluation.Result{VariationID: usage.RestOutcome.ID, Variation: usage.RestOutcome}
}

func servedVariation(v *events.Variation) evaluation.Result {
	return evaluation.Result{
		VariationID: v.ID, VariationName: v.Name, Value: v.Value,
		Variation: &evaluation.Variation{ID: v.ID, Name: v.Name, Value: v.Value},
	}
}

// variant returns the value of a variant that the flag has for flagd.
func (f *reportedFlag) variant(environmentID, name string) json.RawMessage {
	variants, known := f.variants[environmentID]
	if !known {
		variants = flagd.Variants(f.Flag, environmentID)
		f.variants[environmentID] = variants
	}
	return variants[name]
}

// listValues lists all that the flag may serve in any environment.
func (f *reportedFlag) listValues() {
	f.byValue = map[string]evaluation.Result{}
	add := func(value []byte) {
		if value != nil {
			f.byValue[canonical(value)] = evaluation.Result{Value: value}
		}
	}
	if f.Type == events.BooleanFlag {
		add(evaluation.True)
		add(evaluation.False)
	}
	add(f.DefaultValue)
	for _, rules := range f.Rules {
		for i := range rules {
			add(rules[i].Serve.Value)
		}
	}
	for _, serve := range f.Fallthrough {
		add(serve.Value)
	}
	for i := range f.Variations {
		f.byValue[canonical(f.Variations[i].Value)] = servedVariation(&f.Variations[i])
	}
}

// canonical returns a value in the spelling that all of its spellings share (RFC 8785), empty for what is not JSON.
func canonical(value []byte) string {
	c := jsontext.Value(bytes.Clone(value))
	if c.Canonicalize() != nil {
		return ""
	}
	return string(c)
}

// reasonOf returns our reason for one of ours or of OpenFeature's, in any case.
func reasonOf(text string) evaluation.Reason {
	switch reason := evaluation.Reason(strings.ToUpper(text)); reason {
	case evaluation.Archived, evaluation.Off, evaluation.PrerequisiteFailed, evaluation.RuleMatch, evaluation.Fallthrough:
		return reason
	case "DISABLED":
		return evaluation.Off
	case "TARGETING_MATCH":
		return evaluation.RuleMatch
	default:
		return evaluation.Fallthrough
	}
}
