package evaluation

import (
	"context"
	"fmt"
	"net/http"

	"flagledger/events"
	"flagledger/events/rules"
	"flagledger/http/rest"
	"flagledger/projections/usage"
)

// maxReported limits the counts of a report, maxReportedSum their sum.
const (
	maxReported    = 10_000
	maxReportedSum = 1_000_000_000
	maxReportID    = 100
)

type usageReport struct {
	ReportID string          `json:"reportId" doc:"Chosen by the caller: a report that is sent again counts once" example:"0198c5a1-8e3f-7a21-b4c6-6d2f8a0c4e95"`
	Counts   []reportedCount `json:"counts" maxItems:"10000"`
}

type reportedCount struct {
	FlagKey     string     `json:"flagKey,omitempty" doc:"Required, except for prefetches of all flags" example:"new-checkout"`
	Environment string     `json:"environment,omitempty" doc:"The default is the key's, or production" example:"production"`
	VariationID string     `json:"variationId,omitempty" doc:"What was served: a variation, or without one a value" example:"0198c5a1-7d2e-7b10-9d0c-3f5f3f1f2a77"`
	Value       rest.Value `json:"value,omitempty" doc:"What the flag cannot serve now counts without its value" example:"true"`
	Reason      string     `json:"reason,omitempty" doc:"Ours or OpenFeature's; any other counts as FALLTHROUGH" example:"RULE_MATCH"`
	Prefetch    bool       `json:"prefetch,omitempty" doc:"It was fetched with all others: it has no variation, no value and no reason. Without flagKey: calls for all flags" example:"false"`
	Required    bool       `json:"required,omitempty" doc:"It was evaluated on behalf of another flag that requires it, which is no evaluation of this flag: it has no reason" example:"false"`
	Hour        string     `json:"hour" format:"date-time" doc:"A time in the hour, of the last 24 hours" example:"2026-03-14T15:00:00Z"`
	Count       int64      `json:"count" example:"308"`
	KeyID       string     `json:"keyId,omitempty" doc:"The evaluation key of the caller who asked; only an edge reports for others" example:"0198c5a1-8a40-7c55-8f1e-0b6f9f3d4c21"`
}

type reportedOutput struct {
	Body struct {
		Accepted     int      `json:"accepted" doc:"How many counts were taken; 0 for a report that was sent before" example:"1"`
		UnknownFlags []string `json:"unknownFlags" doc:"Keys of flags that do not exist: their counts are left out" example:"[]"`
	}
}

func (a *API) addReportUsage() {
	op := rest.Operation("POST", rest.UsageRoute, "report-usage", "Evaluation", "Report evaluations made elsewhere")
	op.Description = reportText
	op.DefaultStatus = http.StatusAccepted
	rest.Register(a.Core, reportAccess, op, func(ctx context.Context, in *struct {
		rest.TenantInput
		Body usageReport
	}) (*reportedOutput, error) {
		p := rest.PrincipalOf(ctx)
		if err := checkReporter(p); err != nil {
			return nil, err
		}
		if err := rest.BodyErrors(ctx); err != nil {
			return nil, err
		}
		r := newReportReader(p, a.Now())
		counts, err := r.read(&in.Body)
		if err != nil {
			return nil, err
		}
		out := &reportedOutput{}
		out.Body.UnknownFlags = r.unknown
		taken, err := a.countReport(ctx, p, in.Body.ReportID, counts)
		if taken {
			out.Body.Accepted = len(counts)
		}
		return out, err
	})
}

// read returns the counts of a report. Its error names all wrong fields.
func (r *reportReader) read(report *usageReport) (counts []usage.Reported, err error) {
	wrong, sum, sent := map[string]string{}, int64(0), report.Counts
	if n := len(report.ReportID); n < 1 || n > maxReportID {
		wrong["reportId"] = fmt.Sprintf("must have 1 to %d bytes", maxReportID)
	}
	if len(sent) > maxReported {
		wrong["counts"] = "must have at most " + events.CountText(maxReported) + " elements"
		sent = nil
	}
	for i := range sent {
		c := &sent[i]
		c.VariationID, c.KeyID = events.CanonicalID(c.VariationID), events.CanonicalID(c.KeyID)
		of := func(name string) string { return fmt.Sprintf("counts[%d].%s", i, name) }
		one := usage.Reported{
			FlagKey: c.FlagKey, Prefetch: c.Prefetch, Required: c.Required, ClientID: r.Machine.ClientID, Count: c.Count,
		}
		var ok bool
		if at, isTime := rules.ParseTime(c.Hour); !isTime {
			wrong[of("hour")] = "must be a time in RFC 3339"
		} else if one.Hour, ok = r.hour(at); !ok {
			wrong[of("hour")] = "must be in the last " + events.PeriodText(usage.ReportAge)
		}
		if one.EnvironmentID, err = r.environmentID(c.Environment); err != nil {
			wrong[of("environment")] = err.Error()
		}
		if c.Count < 1 || c.Count > maxReportedSum {
			wrong[of("count")] = "must be between 1 and " + events.CountText(maxReportedSum)
		} else if sum += c.Count; sum > maxReportedSum {
			wrong["counts"] = "must have a sum of at most " + events.CountText(maxReportedSum)
		}
		if c.KeyID != "" {
			if key := r.EvaluationKey(); key == nil || !key.Edge && key.KeyID != c.KeyID {
				wrong[of("keyId")] = "is only for keys created with edge, or the caller's own"
			} else if r.Tenant.HasEvaluationKey(c.KeyID) {
				one.ClientID = c.KeyID
			}
		}
		switch served := c.VariationID != "" || c.Value != nil; {
		case c.Prefetch && (served || c.Required || c.Reason != ""):
			wrong[of("prefetch")] = "has no variationId, no value, no reason and no required"
		case c.Required && c.Reason != "":
			wrong[of("required")] = "has no reason"
		case !c.Prefetch && c.FlagKey == "":
			wrong[of("flagKey")] = "is required"
		case !c.Prefetch && !served:
			wrong[of("variationId")] = "is required, or a value"
		case c.FlagKey == "":
			counts = append(counts, one)
		default:
			if f := r.flag(c.FlagKey); f != nil {
				one.Life = f.usage.Life()
				if !c.Prefetch {
					one.Result = f.served(one.EnvironmentID, c.VariationID, c.Value)
					one.Result.Reason = reasonOf(c.Reason)
				}
				counts = append(counts, one)
			}
		}
	}
	if len(wrong) > 0 {
		return nil, rest.Invalid(wrong)
	}
	return counts, nil
}

var reportText = "For applications that evaluate in process, and for edges: their evaluations count as the caller's, " +
	"and metrics show how many of them were `reported`. A report has up to " + events.CountText(maxReported) +
	" counts of the last " + events.PeriodText(usage.ReportAge) + ". All of it counts, or nothing; a `reportId` that the " +
	"caller sent before changes nothing.\n\nFor machines with the scope `flags:evaluate` and server keys."
