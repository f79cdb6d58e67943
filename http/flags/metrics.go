package flags

import (
	"bytes"
	"context"
	"errors"
	"io"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"flagledger/events"
	"flagledger/http/rest"
	"flagledger/projections/snapshot/evaluation"
	"flagledger/projections/usage"
)

// MetricsInput asks for metrics of a period.
type MetricsInput struct {
	From        time.Time `query:"from" doc:"The first point is the hour or day of this time; without it there are the last hours or days"`
	To          time.Time `query:"to" doc:"The last point is the hour or day before this time; the one that goes on now without it, and where it is in the future"`
	Interval    string    `query:"interval" enum:"hour,day" default:"hour" doc:"What a point adds up, in UTC. Hours are stored for a shorter time than days"`
	Environment string    `query:"environment" doc:"The uses in this environment alone"`

	period usage.Period
	now    time.Time
}

// Resolve implements huma.Resolver.
func (in *MetricsInput) Resolve(ctx huma.Context) []error {
	if ctx.Query("from") != "" && in.From.IsZero() || ctx.Query("to") != "" && in.To.IsZero() { // huma has refused them
		return nil
	}
	step := usage.Hourly
	if in.Interval == "day" {
		step = usage.Daily
	}
	in.now = rest.RequestOf(ctx.Context()).Now()
	var err error
	if in.period, err = usage.AlignPeriod(step, in.From, in.To, in.now); err != nil {
		return []error{&huma.ErrorDetail{Location: "query.from", Message: err.Error()}}
	}
	return nil
}

// filter says what of a tenant's metrics is asked for. Its error is a problem.
func (in *MetricsInput) filter(ctx context.Context) (usage.MetricsFilter, error) {
	p := *rest.PrincipalOf(ctx)
	f := usage.MetricsFilter{Period: in.period, TenantID: p.Tenant.ID(), Now: in.now}
	for _, e := range p.Tenant.Environments() {
		f.Environments = append(f.Environments, e.ID)
	}
	if in.Environment == "" {
		return f, nil
	}
	err := p.SelectEnvironment(in.Environment)
	f.Environment = p.Environment.ID
	return f, err
}

// MetricsBody is what all metrics have.
type MetricsBody struct {
	Environment *string        `json:"environment" nullable:"true" doc:"null for all" example:"production"`
	Interval    string         `json:"interval" enum:"hour,day" example:"hour"`
	From        rest.Timestamp `json:"from" doc:"When the first point begins"`
	To          rest.Timestamp `json:"to" doc:"When the last point ends, which may be in the future"`
	Evaluations int64          `json:"evaluations" doc:"In all points" example:"4"`
	Reported    int64          `json:"reported" doc:"How many of the evaluations were not made by the service: edges and applications have reported them" example:"0"`
	Prefetches  int64          `json:"prefetches" doc:"Calls for all flags, in all points: they do not tell which flags a client uses" example:"1"`
	Required    int64          `json:"required" doc:"Evaluations on behalf of other flags, in all points, which are not among the evaluations" example:"0"`
	Clients     []clientUse    `json:"clients" doc:"Who evaluated most"`
}

type clientUse struct {
	ClientID    *string        `json:"clientId" nullable:"true" doc:"null for people, who are one together" example:"0198c5a1-8e3f-7a21-b4c6-6d2f8a0c4e95"`
	Name        *string        `json:"name" nullable:"true" doc:"The client's, or the last that one had which was deleted; null for people" example:"checkout"`
	Evaluations int64          `json:"evaluations" example:"4"`
	Reported    int64          `json:"reported" example:"0"`
	LastSeenAt  rest.Timestamp `json:"lastSeenAt" doc:"The last evaluation in the period, to some seconds"`
}

// PointBody is what a point has of a flag and of a tenant alike.
type PointBody struct {
	Time        rest.Timestamp `json:"time" doc:"When the hour or the day began"`
	Evaluations int64          `json:"evaluations" example:"4"`
	Reported    int64          `json:"reported" example:"0"`
	Prefetches  int64          `json:"prefetches" example:"1"`
	Required    int64          `json:"required" example:"0"`
	Reasons     reasonBody     `json:"reasons" doc:"Evaluations by reason; reasons without evaluations are omitted"`
}

// reasonBody has the counts of reasons in one order.
type reasonBody struct {
	Archived           int64 `json:"ARCHIVED,omitzero" example:"0"`
	Off                int64 `json:"OFF,omitzero" example:"1"`
	PrerequisiteFailed int64 `json:"PREREQUISITE_FAILED,omitzero" example:"0"`
	RuleMatch          int64 `json:"RULE_MATCH,omitzero" example:"3"`
	Fallthrough        int64 `json:"FALLTHROUGH,omitzero" example:"0"`
}

type flagPointBody struct {
	PointBody
	Outcomes []outcomeBody `json:"outcomes" doc:"What was served, the most frequent first, and then one for the rest. A variation is one outcome, whatever its value; without one, each value is"`
}

type outcomeBody struct {
	VariationID   *string    `json:"variationId" nullable:"true" doc:"null for a value without a variation" example:"0198c5a1-7d2e-7b10-9d0c-3f5f3f1f2a77"`
	VariationName *string    `json:"variationName" nullable:"true" doc:"Today's, or the last that a removed variation had" example:"on"`
	Value         rest.Value `json:"value" doc:"What was served" example:"true"`
	Count         int64      `json:"count" example:"3"`
	Rest          bool       `json:"rest,omitzero" doc:"true for all other outcomes, which has null as variationId, variationName and value; else left out" example:"false"`
}

type flagMetrics struct {
	FlagKey string `json:"flagKey" example:"new-checkout"`
	MetricsBody
	Points []flagPointBody `json:"points" doc:"In order, without gaps"`
}

// flagMetricsBody writes flagMetrics with one piece of its points in memory at a time, because values can be large.
type flagMetricsBody struct{ pieces *rest.Pieces }

// Schema implements huma.SchemaProvider.
func (flagMetricsBody) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[flagMetrics](), true, "")
}

// WritePieces writes the JSON piece by piece.
func (b flagMetricsBody) WritePieces(w io.Writer) { b.pieces.Send(w) }

// metricsPieces is head with the points. The first piece of them is read and written.
func metricsPieces(ctx context.Context, head flagMetrics, points *usage.FlagPoints) (*rest.Pieces, error) {
	p := rest.NewPieces(ctx)
	p.Text.Write(bytes.TrimSuffix(rest.EncodeJSON(head), []byte("]}"))) // the points are the last member
	separator := ""
	next := func() (bool, error) {
		read, err := points.Next(ctx)
		if err != nil {
			return false, err
		}
		for _, point := range read {
			p.Text.WriteString(separator)
			separator = ","
			p.Text.Write(rest.EncodeJSON(showFlagPoint(point)))
		}
		if !points.More() {
			p.Text.WriteString("]}")
		}
		return points.More(), nil
	}
	more, err := next()
	if more {
		p.Next = rest.WithReadSlot(ctx, next)
	}
	return p, err
}

type tenantMetrics struct {
	MetricsBody
	Points []PointBody      `json:"points" doc:"In order, without gaps"`
	Flags  []flagEvaluation `json:"flags" doc:"The flags that were evaluated most, of those that there are"`
}

type flagEvaluation struct {
	FlagKey     string `json:"flagKey" example:"new-checkout"`
	Evaluations int64  `json:"evaluations" example:"4"`
}

func (in *MetricsInput) show(m usage.Metrics) MetricsBody {
	return MetricsBody{
		Interval:    in.Interval,
		From:        rest.Timestamp(in.period.From),
		To:          rest.Timestamp(in.period.To),
		Environment: rest.TextOrNull(in.Environment),
		Evaluations: m.Evaluations,
		Reported:    m.Reported,
		Prefetches:  m.Prefetches,
		Required:    m.Required,
		Clients:     showClients(m.Clients),
	}
}

func showClients(clients []usage.ClientUse) []clientUse {
	shown := make([]clientUse, len(clients))
	for i, c := range clients {
		shown[i] = clientUse{c.ClientID, c.Name, c.Evaluations, c.Reported, rest.Timestamp(c.LastSeen)}
	}
	return shown
}

func showPoint(p usage.Point) PointBody {
	of := func(r evaluation.Reason) int64 { return p.Reasons[string(r)] }
	return PointBody{
		Time: rest.Timestamp(p.Time), Evaluations: p.Evaluations, Reported: p.Reported, Prefetches: p.Prefetches,
		Required: p.Required,
		Reasons: reasonBody{
			of(evaluation.Archived), of(evaluation.Off), of(evaluation.PrerequisiteFailed), of(evaluation.RuleMatch),
			of(evaluation.Fallthrough),
		},
	}
}

func showFlagPoint(p usage.Point) flagPointBody {
	body := flagPointBody{showPoint(p), []outcomeBody{}}
	for _, o := range p.Outcomes {
		shown := outcomeBody{Value: rest.Value("null"), Count: o.Count, Rest: o.Outcome == nil}
		if !shown.Rest {
			shown.VariationID, shown.VariationName, shown.Value = o.VariationID, o.VariationName, rest.Value(o.Value)
		}
		body.Outcomes = append(body.Outcomes, shown)
	}
	return body
}

const metricsCounted = "An evaluation is a call for the flag, or for several of which `flagKeys` names it; a " +
	"prefetch is a call for all flags; an evaluation on behalf of another flag that requires the flag is `required`, and " +
	"no evaluation. Calls with `at`, `version`, " +
	"`explain` or `preview`, and those that were refused, do not count. Counts may come up to five seconds late. " +
	"`X-Environment` chooses nothing here. Points, and what else an answer has, are limited"

func (a *API) addFlagMetrics() {
	const path = "/metrics"
	flag := rest.Operation("GET", "/api/v1/flags/{flagKey}"+path, "get-flag-metrics", "Flags",
		"How often a flag is evaluated, what it serves, and to whom")
	flag.Description = metricsCounted + ", with their values. The counts of a flag, and of an environment, end when it " +
		"is deleted."
	rest.Register(a.Core, rest.Access{Who: rest.Viewer, Scope: events.FlagsRead}, flag,
		func(ctx context.Context, in *struct {
			rest.TenantInput
			MetricsInput
			Key string `path:"flagKey" doc:"The flag's key" example:"new-checkout"`
		}) (*struct{ Body flagMetricsBody }, error) {
			filter, err := in.filter(ctx)
			if err != nil {
				return nil, err
			}
			m, err := a.Meter.FlagMetrics(ctx, filter, in.Key)
			if errors.Is(err, usage.ErrLargeOutcomes) {
				err = rest.Invalid(map[string]string{"from": err.Error()})
			}
			if err != nil {
				return nil, err
			}
			head := flagMetrics{FlagKey: in.Key, MetricsBody: in.show(m), Points: []flagPointBody{}}
			p, err := metricsPieces(ctx, head, a.Meter.FlagPoints(filter.TenantID, in.Key, m))
			return &struct{ Body flagMetricsBody }{flagMetricsBody{p}}, err
		})
	tenant := rest.Operation("GET", "/api/v1/tenants/{tenantId}"+path, "get-tenant-metrics", "Tenants",
		"How often a tenant's flags are evaluated, which of them most, and by whom")
	tenant.Description = metricsCounted + ". What flags and environments counted stays when they are deleted, but for " +
		"`flags`."
	rest.Register(a.Core, rest.Access{Who: rest.Viewer}, tenant, func(ctx context.Context, in *struct {
		rest.TenantPath
		MetricsInput
	}) (*struct{ Body tenantMetrics }, error) {
		filter, err := in.filter(ctx)
		if err != nil {
			return nil, err
		}
		m, err := a.Meter.TenantMetrics(ctx, filter)
		if err != nil {
			return nil, err
		}
		body := tenantMetrics{MetricsBody: in.show(m), Points: make([]PointBody, len(m.Points)), Flags: []flagEvaluation{}}
		for i, p := range m.Points {
			body.Points[i] = showPoint(p)
		}
		top, err := a.topFlags(ctx, filter)
		for _, f := range top {
			body.Flags = append(body.Flags, flagEvaluation{f.Key, f.Evaluations})
		}
		return &struct{ Body tenantMetrics }{body}, err
	})
}

// topFlags reads which flags were evaluated most, one such call of a tenant at a time: it goes through the counts of
// all flags.
func (a *API) topFlags(ctx context.Context, filter usage.MetricsFilter) ([]usage.FlagEvaluations, error) {
	slot, err := a.EnterPast(ctx)
	if err != nil {
		return nil, err
	}
	defer slot.Leave()
	return a.Meter.TopFlags(ctx, filter)
}
