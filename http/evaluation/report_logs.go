package evaluation

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	collector "go.opentelemetry.io/proto/slim/otlp/collector/logs/v1"
	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	logs "go.opentelemetry.io/proto/slim/otlp/logs/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"flagledger/events"
	"flagledger/http/rest"
	"flagledger/projections/usage"
)

const (
	protobufType = "application/x-protobuf"
	jsonType     = "application/json"
)

// Names of OpenTelemetry's semantic convention for feature flags, and those that older hooks send.
const evaluationEvent = "feature_flag.evaluation"

var (
	variantNames = []string{"feature_flag.result.variant", "feature_flag.variant"}
	reasonNames  = []string{"feature_flag.result.reason", "feature_flag.evaluation.reason"}
	errorNames   = []string{"error.type"}
)

// reportLogs counts the evaluations of flags among OpenTelemetry's logs (OTLP/HTTP 1.x). It skips all other logs.
func (a *API) reportLogs(w http.ResponseWriter, r *http.Request) {
	if err := a.countLogs(w, r); err != nil {
		rest.WriteProblem(w, r, rest.ProblemOf(r.Context(), err))
	}
}

func (a *API) countLogs(w http.ResponseWriter, r *http.Request) error {
	p, err := a.AdmitReporter(r)
	if err != nil {
		return err
	}
	if err := p.SelectEnvironment(r.Header.Get(rest.EnvironmentHeader)); err != nil {
		return err
	}
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if media != protobufType && media != jsonType {
		return rest.NewProblem(http.StatusUnsupportedMediaType, "the body must be of the type "+protobufType+" or "+jsonType)
	}
	counts, refused, err := a.readLogs(r, p, media)
	if err != nil {
		return err
	}
	if len(counts) > 0 {
		if _, err := a.countReport(r.Context(), p, "", counts); err != nil {
			return err
		}
	}
	response := &collector.ExportLogsServiceResponse{}
	if refused.RejectedLogRecords > 0 {
		response.PartialSuccess = refused
	}
	encode := proto.Marshal
	if media == jsonType {
		encode = protojson.Marshal
	}
	body, err := encode(response)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", media)
	_, _ = w.Write(body)
	return nil
}

// readLogs returns the evaluations among the logs of a body, and how many others are refused and why.
func (a *API) readLogs(
	r *http.Request, p *rest.Principal, media string,
) ([]usage.Reported, *collector.ExportLogsPartialSuccess, error) {
	e, err := a.readEvaluationBody(r, p)
	if err != nil {
		return nil, nil, err
	}
	defer e.release()
	request := &collector.ExportLogsServiceRequest{}
	if media == jsonType {
		err = protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(e.data, request)
	} else {
		err = proto.Unmarshal(e.data, request)
	}
	if err != nil {
		return nil, nil, rest.NewProblem(http.StatusBadRequest, "the body is not an ExportLogsServiceRequest: "+err.Error())
	}
	reader := newReportReader(p, a.Now())
	counts, refused := reader.readLogs(request)
	return counts, refused, nil
}

func (r *reportReader) readLogs(
	request *collector.ExportLogsServiceRequest,
) (counts []usage.Reported, refused *collector.ExportLogsPartialSuccess) {
	refused = &collector.ExportLogsPartialSuccess{}
	for _, resource := range request.ResourceLogs {
		for _, scope := range resource.ScopeLogs {
			for _, record := range scope.LogRecords {
				if !isEvaluation(record) {
					continue
				}
				count, err := r.readLog(record)
				switch {
				case errors.Is(err, errNotServed):
				case err != nil:
					refused.RejectedLogRecords++
					refused.ErrorMessage = cmp.Or(refused.ErrorMessage, err.Error()) // the first
				default:
					counts = append(counts, count)
				}
			}
		}
	}
	return counts, refused
}

func isEvaluation(l *logs.LogRecord) bool {
	return l.EventName == evaluationEvent || textOf(attribute(l, "event.name")) == evaluationEvent
}

// errNotServed reports an evaluation that failed: the application served the default of its code.
var errNotServed = errors.New("the evaluation has failed")

func (r *reportReader) readLog(l *logs.LogRecord) (c usage.Reported, err error) {
	reason := textOf(attribute(l, reasonNames...))
	if attribute(l, errorNames...) != nil || strings.EqualFold(reason, "error") {
		return c, errNotServed
	}
	nanoseconds := l.TimeUnixNano
	if nanoseconds == 0 {
		nanoseconds = l.ObservedTimeUnixNano
	}
	hour, ok := r.hour(time.Unix(0, int64(nanoseconds)))
	if !ok {
		return c, errors.New("timeUnixNano must be in the last " + events.PeriodText(usage.ReportAge))
	}
	environmentID := r.Environment.ID
	// the set is <tenant>/<environment> in our answers, and may be an environment alone
	if set := textOf(attribute(l, "feature_flag.set.id")); set != "" {
		tenantID, name := path.Split(set)
		if tenantID != "" && strings.TrimSuffix(tenantID, "/") != r.Tenant.ID() {
			return c, fmt.Errorf("feature_flag.set.id is of another tenant: %q", set)
		}
		if name == "" {
			return c, fmt.Errorf("feature_flag.set.id names no environment: %q", set)
		}
		if environmentID, err = r.environmentID(name); err != nil {
			return c, fmt.Errorf("feature_flag.set.id: %w", err)
		}
	}
	key := textOf(attribute(l, "feature_flag.key"))
	f := r.flag(key)
	if f == nil {
		return c, fmt.Errorf("feature_flag.key: there is no flag %q", key)
	}
	value := attribute(l, "feature_flag.result.value")
	if value == nil {
		value = member(l.Body.GetKvlistValue().GetValues(), "value")
	}
	c = usage.Reported{
		FlagKey: key, Life: f.usage.Life(), EnvironmentID: environmentID, ClientID: r.Machine.ClientID, Hour: hour, Count: 1,
	}
	c.Result = f.served(environmentID, textOf(attribute(l, variantNames...)), jsonOf(value))
	c.Result.Reason = reasonOf(reason)
	return c, nil
}

// attribute returns the first attribute that a record has of some names, nil if it has none.
func attribute(l *logs.LogRecord, names ...string) *common.AnyValue {
	return member(l.Attributes, names...)
}

func member(list []*common.KeyValue, names ...string) *common.AnyValue {
	for _, a := range list {
		if slices.Contains(names, a.Key) {
			return a.Value
		}
	}
	return nil
}

func textOf(v *common.AnyValue) string { return v.GetStringValue() }

// jsonOf returns a value as JSON, nil for none.
func jsonOf(v *common.AnyValue) []byte {
	if v == nil || v.Value == nil {
		return nil
	}
	text, err := json.Marshal(plainOf(v, maxDepth))
	if err != nil { // NaN
		return nil
	}
	return text
}

// maxDepth limits how deep values are read: flags have none that are deeper.
const maxDepth = 32

func plainOf(v *common.AnyValue, depth int) any {
	if depth == 0 {
		return nil
	}
	switch of := v.GetValue().(type) {
	case *common.AnyValue_StringValue:
		return of.StringValue
	case *common.AnyValue_BoolValue:
		return of.BoolValue
	case *common.AnyValue_IntValue:
		return of.IntValue
	case *common.AnyValue_DoubleValue:
		return of.DoubleValue
	case *common.AnyValue_ArrayValue:
		list := []any{}
		for _, element := range of.ArrayValue.GetValues() {
			list = append(list, plainOf(element, depth-1))
		}
		return list
	case *common.AnyValue_KvlistValue:
		object := map[string]any{}
		for _, one := range of.KvlistValue.GetValues() {
			object[one.GetKey()] = plainOf(one.GetValue(), depth-1)
		}
		return object
	default:
		return nil
	}
}

func (a *API) documentLogs() {
	op := rest.Operation("POST", rest.LogsRoute, "report-logs", "Evaluation", "Report evaluations as OpenTelemetry's logs")
	op.Description = logsText
	op.Security = reportAccess.Security()
	op.Parameters = []*huma.Param{tenantParam(true), environmentParam()}
	content := func(message string, example any) map[string]*huma.MediaType {
		return map[string]*huma.MediaType{
			jsonType: {Schema: &huma.Schema{Type: huma.TypeObject, Description: message}, Example: example},
			protobufType: {
				Schema: &huma.Schema{Type: huma.TypeString, Format: "binary", Description: message}, Example: "(protobuf)",
			},
		}
	}
	op.RequestBody = &huma.RequestBody{Required: true, Content: content("ExportLogsServiceRequest", logsExample)}
	op.Responses = map[string]*huma.Response{
		"200": {Description: "OK", Content: content("ExportLogsServiceResponse", map[string]any{})},
	}
	a.Huma.OpenAPI().AddOperation(&op)
}

const logsText = "For applications that evaluate in process with an OpenFeature SDK and its OpenTelemetry hook: the " +
	"endpoint of an exporter of logs (OTLP over HTTP, protobuf or JSON, not compressed). Records of the event " +
	"`feature_flag.evaluation` count as evaluations of the caller, in the hour of their time; the environment is " +
	"`feature_flag.set.id`, else the caller's. All other records are skipped, and so are evaluations that failed. " +
	"`partialSuccess` says how many could not be counted, and why the first. An export that is sent again counts " +
	"again.\n\nFor machines with the scope `flags:evaluate` and server keys."

var logsExample = exampleOfLogs(map[string]any{
	"timeUnixNano": "1773500400000000000",
	"eventName":    evaluationEvent,
	"attributes": []any{
		map[string]any{"key": "feature_flag.key", "value": map[string]any{"stringValue": "new-checkout"}},
		map[string]any{"key": "feature_flag.result.value", "value": map[string]any{"boolValue": true}},
	},
})

func exampleOfLogs(record map[string]any) map[string]any {
	scope := map[string]any{"logRecords": []any{record}}
	return map[string]any{"resourceLogs": []any{map[string]any{"scopeLogs": []any{scope}}}}
}
