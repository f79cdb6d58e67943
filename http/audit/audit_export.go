package audit

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"flagledger/http/rest"
	"flagledger/http/strictjson"
	"flagledger/queries"
)

// maxExport is the longest duration of one export. The client must read each piece within AnswerTimeout.
const maxExport = 10 * time.Minute

// AuditExportBody is a line of an export.
type AuditExportBody struct {
	Position int64 `json:"position" doc:"The number of the fact among the tenant's facts, from 0" example:"41"`
	AuditEntryBody
}

type auditExportInput struct {
	rest.TenantInput
	AuditFilterInput
	Format string `query:"format" enum:"ndjson,csv" default:"ndjson" doc:"One JSON object a line, or CSV, which begins with a header line unless after is sent"`
	After  int64  `query:"after" minimum:"-1" default:"-1" doc:"The position of the last entry that you have, to continue after it; -1 for all"`
}

// exportFormat writes an export in one media type.
type exportFormat struct {
	media string
	begin func(b *bytes.Buffer) error
	write func(b *bytes.Buffer, rows []queries.AuditEntry) error
}

var exportFormats = map[string]exportFormat{
	"ndjson": {"application/x-ndjson", func(*bytes.Buffer) error { return nil }, writeNDJSON},
	"csv":    {"text/csv", func(b *bytes.Buffer) error { return writeCSV(b, [][]string{exportColumns}) }, writeCSVEntries},
}

func writeNDJSON(b *bytes.Buffer, rows []queries.AuditEntry) error {
	for _, row := range rows {
		if err := strictjson.Write(b, AuditExportBody{row.Position, showAuditEntry(row)}); err != nil {
			return err
		}
		b.WriteByte('\n')
	}
	return nil
}

var exportColumns = []string{
	"position",
	"id",
	"timestamp",
	"action",
	"resourceType",
	"resourceId",
	"resourceName",
	"environment",
	"userId",
	"userName",
	"actorType",
	"reason",
	"requestId",
	"version",
	"changes",
}

func writeCSVEntries(b *bytes.Buffer, rows []queries.AuditEntry) error {
	lines := make([][]string, len(rows))
	for i, row := range rows {
		e, environment := showAuditEntry(row), ""
		if e.Environment != nil {
			environment = *e.Environment
		}
		lines[i] = []string{
			strconv.FormatInt(row.Position, 10),
			e.ID,
			e.Timestamp.String(),
			e.Action,
			string(e.Resource.Type),
			cell(e.Resource.ID),
			cell(e.Resource.Name),
			cell(environment),
			e.UserID,
			cell(e.UserName),
			e.ActorType,
			cell(e.Reason),
			e.RequestID,
			strconv.FormatInt(e.Version, 10),
			jsonCell(string(e.Changes)),
		}
	}
	return writeCSV(b, lines)
}

const (
	formulaStarts  = "=+-@＝＋－＠"
	cellSeparators = ";\t\r\n" // spreadsheets may read the file with a separator other than the comma
)

// cell returns text that a user chose, with an apostrophe before each formula that a spreadsheet would run:
// https://owasp.org/www-community/attacks/CSV_Injection.
func cell(text string) string {
	if first, _ := utf8.DecodeRuneInString(text); strings.ContainsRune("\t\r\n", first) {
		text = "'" + text
	}
	return withoutFormulas(text, true, func(r rune) string { return "'" + string(r) })
}

// jsonCell escapes JSON for a cell. What looks like a formula is inside a JSON string, so an escape does not change its
// meaning.
func jsonCell(text string) string {
	return withoutFormulas(text, false, func(r rune) string { return fmt.Sprintf(`\u%04x`, r) })
}

// withoutFormulas replaces each rune that would start a formula at the beginning of a cell.
func withoutFormulas(text string, begins bool, replace func(rune) string) string {
	var b strings.Builder
	for _, r := range text {
		if begins && strings.ContainsRune(formulaStarts, r) {
			b.WriteString(replace(r))
		} else {
			b.WriteRune(r)
		}
		begins = strings.ContainsRune(cellSeparators, r) || begins && r == '"' // spreadsheets remove the quotes of a cell
	}
	return b.String()
}

func writeCSV(b *bytes.Buffer, lines [][]string) error { return csv.NewWriter(b).WriteAll(lines) }

// exportOutput is a response that is not JSON. Body writes it.
type exportOutput struct {
	Body func(huma.Context)
}

// newExport returns a file as the response, which may be long.
func newExport(p *rest.Pieces, media, name string) *exportOutput {
	return &exportOutput{func(c huma.Context) {
		r, w := rest.Unwrap(c)
		w.Header().Set("Content-Type", media)
		w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
		if r.Method != http.MethodHead {
			p.SendLong(w, maxExport)
		}
	}}
}

// recheckAccess reads further pieces only while the caller still has access: an export may take minutes.
func (a *API) recheckAccess(ctx context.Context, need rest.Access, read func() (more bool,
	err error)) func() (bool, error) {
	return func() (bool, error) {
		if !a.StillAllowed(rest.PrincipalOf(ctx), need) {
			return false, errors.New("the caller no longer has access")
		}
		return read()
	}
}

func (a *API) addAuditExport() {
	op := rest.Operation("GET", auditRoute+"/export", "export-audit-trail", "Audit",
		"The whole trail, oldest first, for other programs")
	op.Description = `Shows the trail as of the start of the export. An export that was cut off, as one of over ten minutes is, continues with ` + "`after`" + `,
the position of the last whole line.
A continued CSV export has no header line: append it to the whole lines that you have. In CSV, text that a spreadsheet would run as a formula begins with an
apostrophe.`
	line := a.Huma.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[AuditExportBody](), true, "")
	op.Responses = map[string]*huma.Response{"200": {Description: "The entries", Content: map[string]*huma.MediaType{
		exportFormats["ndjson"].media: {
			Schema: &huma.Schema{
				Type:        huma.TypeArray,
				Description: "Each element stands on a line of its own, without brackets and commas",
				Items:       line,
			},
			Example: exportedLine,
		},
		exportFormats["csv"].media: {Schema: &huma.Schema{Type: huma.TypeString}, Example: exportedCSV},
	}}}
	rest.Register(a.Core, readAudit, op, a.exportAudit)
}

func (a *API) exportAudit(ctx context.Context, in *auditExportInput) (*exportOutput, error) {
	export, err := a.Queries.ExportAudit(ctx, rest.PrincipalOf(ctx).Tenant.ID(),
		a.auditFilter(in.AuditFilterInput), in.After)
	if err != nil {
		return nil, err
	}
	format := exportFormats[in.Format]
	p := rest.NewPieces(ctx)
	read := func() (bool, error) {
		rows, err := export.Next(ctx)
		return export.More(), errors.Join(err, format.write(&p.Text, rows))
	}
	if in.After < 0 { // otherwise the caller already has the beginning
		if err := format.begin(&p.Text); err != nil {
			return nil, err
		}
	}
	more, err := read()
	if err != nil {
		return nil, err
	}
	if more {
		p.Next = a.recheckAccess(ctx, readAudit, rest.WithReadSlot(ctx, read))
	}
	return newExport(p, format.media, "audit."+in.Format), nil
}

const (
	exportedLine = `{"position":41,"id":"0198c5a1-9c51-7f3d-8b26-5e7d9f1a3b42","timestamp":"2026-03-14T15:09:26.535120Z","action":"flag.enabled",` +
		`"resource":{"type":"flag","id":"new-checkout","name":"New checkout"},"environment":"production","changes":{"enabled":{"from":false,"to":true}},` +
		`"userId":"0198c5a0-d3c2-7e19-9a75-2b8f6c4d1e05","userName":"Ada","actorType":"user","reason":"launch day","requestId":"0198c5a1-6f3b-7d1e-a2c4-5b6e7f809a1b","version":7}
`
	exportedCSV = `position,id,timestamp,action,resourceType,resourceId,resourceName,environment,userId,userName,actorType,reason,requestId,version,changes
41,0198c5a1-9c51-7f3d-8b26-5e7d9f1a3b42,2026-03-14T15:09:26.535120Z,flag.enabled,flag,new-checkout,New checkout,production,0198c5a0-d3c2-7e19-9a75-2b8f6c4d1e05,Ada,user,launch day,0198c5a1-6f3b-7d1e-a2c4-5b6e7f809a1b,7,"{""enabled"":{""from"":false,""to"":true}}"
`
)
