package audit

import (
	"cmp"
	"context"
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"flagledger/events"
	"flagledger/events/state"
	"flagledger/http/rest"
	"flagledger/queries"
)

const (
	auditRoute         = "/api/v1/audit"
	platformAuditRoute = "/api/v1/admin/audit"
)

// readAudit lets every member of a tenant read its trail. Machines may not.
var readAudit = rest.Access{Who: rest.Viewer}

// AuditEntryBody is an entry of the audit trail: one fact.
type AuditEntryBody struct {
	ID          string            `json:"id" example:"0198c5a1-9c51-7f3d-8b26-5e7d9f1a3b42"`
	Timestamp   rest.RecordedTime `json:"timestamp" doc:"When the store recorded it. Sent as at, it includes the fact"`
	Action      string            `json:"action" doc:"The stored name of the fact" example:"flag.enabled"`
	Resource    AuditResourceBody `json:"resource"`
	Environment *string           `json:"environment" nullable:"true" doc:"Its name at the time; null if the fact does not concern a single environment" example:"production"`
	Changes     rest.Value        `json:"changes" doc:"Each changed field with from and to, as in the history of a flag; from is missing if the fact does not record it, and both are missing for personal data" example:"{\"enabled\":{\"from\":false,\"to\":true}}"`
	UserID      string            `json:"userId" doc:"The id of a person or a client, or of a declined invitation" example:"0198c5a0-d3c2-7e19-9a75-2b8f6c4d1e05"`
	UserName    string            `json:"userName" doc:"The display name, or else the address, or else the userId. \"erased user\" if the person was erased, \"the invited person\" if they declined" example:"Ada"`
	ActorType   string            `json:"actorType" enum:"user,client,system,invited" doc:"invited is the person who declined an invitation"`
	Reason      string            `json:"reason" doc:"From X-Change-Reason" example:"launch day"`
	RequestID   string            `json:"requestId" example:"0198c5a1-6f3b-7d1e-a2c4-5b6e7f809a1b"`
	Version     int64             `json:"version" doc:"The number of the fact in the stream of its flag, project, tenant, person or invitation" example:"7"`
}

// resourceType is a type of resource that facts concern.
type resourceType string

// Schema implements huma.SchemaProvider.
func (resourceType) Schema(huma.Registry) *huma.Schema {
	var types []any
	for _, name := range state.ResourceTypes() {
		types = append(types, name)
	}
	return &huma.Schema{Type: huma.TypeString, Enum: types}
}

// AuditResourceBody is the resource that a fact concerns.
type AuditResourceBody struct {
	Type resourceType `json:"type"`
	ID   string       `json:"id" doc:"A flag's key, a subscription's tenant, or else an id" example:"new-checkout"`
	Name string       `json:"name" doc:"Its name at the time; for a person, the current name. The id if there is no name; \"withdrawn invitation\" for a pending member who never joined" example:"New checkout"`
}

type platformAuditBody struct {
	AuditEntryBody
	TenantID *string `json:"tenantId" nullable:"true" doc:"null for changes to the platform" example:"0198c5a0-e0b7-7d42-8c19-4d5e6f708192"`
}

func showAuditEntry(e queries.AuditEntry) AuditEntryBody {
	resource := AuditResourceBody{Type: resourceType(e.ResourceType), ID: e.ResourceID,
		Name: cmp.Or(e.ResourceName, e.ResourceID)}
	if !e.ResourceKnown {
		resource.Name = rest.UnknownName(e.ResourceWithdrawn)
	}
	return AuditEntryBody{
		ID:          e.ID,
		Timestamp:   rest.RecordedTime(e.Timestamp),
		Action:      e.Action,
		Resource:    resource,
		Environment: e.Environment,
		Changes:     rest.Value(e.Changes),
		UserID:      e.ActorID,
		UserName:    rest.ActorName(e.Actor),
		ActorType:   e.ActorKind,
		Reason:      e.Reason,
		RequestID:   e.RequestID,
		Version:     e.Version,
	}
}

// AuditFilterInput holds the filters of an audit trail.
type AuditFilterInput struct {
	rest.PeriodInput
	Action            string       `query:"action" doc:"The stored name of the fact, such as flag.enabled"`
	UserID            string       `query:"userId" doc:"The id of a person or a client"`
	ResourceType      resourceType `query:"resourceType"`
	ResourceID        string       `query:"resourceId" doc:"A flag's key, a subscription's tenant, or else an id"`
	EnvironmentFilter string       `query:"environment" doc:"The name of the environment at the time"`
	Search            string       `query:"q" maxLength:"200" doc:"Part of the resource's id or name as shown in the entry, of the reason or of the userId; case-insensitive"`
}

func (a *API) auditFilter(in AuditFilterInput) queries.AuditFilter {
	resource := in.ResourceID
	if in.ResourceType != "flag" { // a flag's key is used as sent
		resource = a.PersonID(resource) // or the id of something else
	}
	return queries.AuditFilter{
		Action:       in.Action,
		UserID:       a.PersonID(in.UserID),
		ResourceType: string(in.ResourceType),
		ResourceID:   resource,
		Environment:  in.EnvironmentFilter,
		From:         in.From,
		To:           in.To,
		Search:       in.Search,
	}
}

// AuditPageInput holds the filters and the page of an audit trail.
type AuditPageInput struct {
	AuditFilterInput
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"50" doc:"The maximum number of entries"`
	Cursor string `query:"cursor" doc:"Where the page begins: from the Link of the previous page"`
}

// auditOutput is a page of an audit trail.
type auditOutput[T any] struct {
	Link []string `header:"Link" doc:"The next page, if there may be one: rel=\"next\""`
	Body rest.Entries[T]
}

const auditPages = `Pages neither skip nor repeat facts while new ones arrive; new facts are on the first page. A page may be short or empty before the end,
as it stops after some 3,000 facts that do not match the filters. Follow ` + "`Link`" + ` until there is none.`

func (a *API) addAudit() {
	op := rest.Operation("GET", auditRoute, "get-audit-trail", "Audit",
		"Every change of anything in the tenant, newest first")
	op.Description = auditPages
	rest.Register(a.Core, readAudit, op, func(ctx context.Context, in *struct {
		rest.TenantInput
		AuditPageInput
	}) (*auditOutput[AuditEntryBody], error) {
		return tenantAudit(ctx, a, rest.PrincipalOf(ctx).Tenant.ID(), in.AuditPageInput, showAuditEntry)
	})
	op = rest.Operation("GET", platformAuditRoute, "get-platform-audit-trail", "Platform",
		"Every change of anything in all tenants and on the platform, newest first")
	op.Description = auditPages + " The trail of a deleted tenant remains."
	rest.Register(a.Core, rest.PlatformAccess(events.PlatformAdmin), op, func(ctx context.Context, in *struct {
		Tenant string `query:"tenantId" doc:"Only changes in this tenant, deleted or not"`
		AuditPageInput
	}) (*auditOutput[platformAuditBody], error) {
		show := func(e queries.AuditEntry) platformAuditBody { return platformAuditBody{showAuditEntry(e), e.TenantID} }
		if in.Tenant != "" {
			return tenantAudit(ctx, a, events.CanonicalID(in.Tenant), in.AuditPageInput, show)
		}
		before, err := readCursor("platform", in.Cursor, 2)
		if err != nil {
			return nil, err
		}
		page, next, err := a.Queries.PlatformAudit(ctx, a.auditFilter(in.AuditFilterInput), before, in.Limit)
		return auditPage(ctx, "platform", page, next, err, show)
	})
	a.addAuditExport()
	a.addAuditFacts()
	a.addAuditProof()
}

func tenantAudit[T any](
	ctx context.Context, a *API, tenantID string, in AuditPageInput, show func(queries.AuditEntry) T,
) (*auditOutput[T], error) {
	before, err := readCursor(tenantID, in.Cursor, 1)
	if err != nil {
		return nil, err
	}
	page, next, err := a.Queries.Audit(ctx, tenantID, a.auditFilter(in.AuditFilterInput), before, in.Limit)
	return auditPage(ctx, tenantID, page, next, err, show)
}

func auditPage[T any](
	ctx context.Context, trail string, page *queries.List[queries.AuditEntry], next queries.AuditCursor, err error,
	show func(queries.AuditEntry) T,
) (*auditOutput[T], error) {
	if err != nil {
		return nil, err
	}
	empty := len(page.Rows) == 0
	p, err := rest.PiecesOf(ctx, page, show)
	if err != nil {
		return nil, err
	}
	out := &auditOutput[T]{Body: rest.Entries[T]{Pieces: p, Empty: empty}}
	if next != nil {
		out.Link = rest.NextPage(ctx, "cursor", writeCursor(trail, next))
	}
	return out, nil
}

// writeCursor encodes a cursor, which is valid for one trail.
func writeCursor(trail string, c queries.AuditCursor) string {
	text := trail
	for _, number := range c {
		text += " " + strconv.FormatInt(number, 10)
	}
	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

// readCursor decodes a cursor; it returns nil for an empty text. The error is a problem.
func readCursor(trail, text string, numbers int) (queries.AuditCursor, error) {
	if text == "" {
		return nil, nil
	}
	refused := rest.Invalid(map[string]string{"cursor": "is not a cursor of this trail: take it from the Link of a page"})
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	rest, ok := strings.CutPrefix(string(decoded), trail+" ")
	fields := strings.Fields(rest)
	if err != nil || !ok || len(fields) != numbers {
		return nil, refused
	}
	var c queries.AuditCursor
	for _, field := range fields {
		number, err := strconv.ParseInt(field, 10, 64)
		if err != nil || number < 0 {
			return nil, refused
		}
		c = append(c, number)
	}
	return c, nil
}
