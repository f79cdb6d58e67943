package http

import (
	"cmp"
	"context"
	"encoding/base64"
	"strconv"
	"strings"

	"flagledger/events"
	"flagledger/queries"
)

const (
	auditRoute         = "/api/v1/audit"
	platformAuditRoute = "/api/v1/admin/audit"
)

// readAudit is the access of everybody in a tenant to its trail. No machine has it.
var readAudit = access{who: viewer}

// AuditEntryBody is a fact as the audit trail shows it.
type AuditEntryBody struct {
	ID          string            `json:"id" example:"0198c5a1-9c51-7f3d-8b26-5e7d9f1a3b42"`
	Timestamp   recordedTime      `json:"timestamp" doc:"When the store recorded it. As at it includes the fact"`
	Action      string            `json:"action" doc:"The stored name of the fact" example:"flag.enabled"`
	Resource    AuditResourceBody `json:"resource"`
	Environment *string           `json:"environment" nullable:"true" doc:"Its name then; null where it is about none alone" example:"production"`
	Changes     value             `json:"changes" doc:"Each changed field with from and to, as in the history of a flag; from is missing where the fact does not tell it, and both for what the directory alone knows" example:"{\"enabled\":{\"from\":false,\"to\":true}}"`
	UserID      string            `json:"userId" doc:"Of a person or a client; of an invitation that was declined" example:"0198c5a0-d3c2-7e19-9a75-2b8f6c4d1e05"`
	UserName    string            `json:"userName" doc:"A display name, or else the address, or else the userId. erased user stands for one whom the service no longer knows, the invited person for one who declined" example:"Ada"`
	ActorType   string            `json:"actorType" enum:"user,client,system,invited" doc:"invited is the person who declined an invitation"`
	Reason      string            `json:"reason" doc:"From X-Change-Reason" example:"launch day"`
	RequestID   string            `json:"requestId" example:"0198c5a1-6f3b-7d1e-a2c4-5b6e7f809a1b"`
	Version     int64             `json:"version" doc:"The number of the fact in the stream of its flag, project, tenant, person or invitation" example:"7"`
}

// AuditResourceBody is what a fact is about.
type AuditResourceBody struct {
	Type string `json:"type" enum:"flag,project,tenant,environment,member,oauth_client,subscription,user,invitation"`
	ID   string `json:"id" doc:"A flag's key, a subscription's tenant, or else an id" example:"new-checkout"`
	Name string `json:"name" doc:"Its name then; a person's is today's, also where they were a pending member. The id where there is none; withdrawn invitation for a pending member who never joined" example:"New checkout"`
}

type platformAuditBody struct {
	AuditEntryBody
	TenantID *string `json:"tenantId" nullable:"true" doc:"null for what concerns the platform" example:"0198c5a0-e0b7-7d42-8c19-4d5e6f708192"`
}

func showAuditEntry(e queries.AuditEntry) AuditEntryBody {
	resource := AuditResourceBody{Type: e.ResourceType, ID: e.ResourceID, Name: cmp.Or(e.ResourceName, e.ResourceID)}
	if !e.ResourceKnown {
		resource.Name = unknownName(e.ResourceWithdrawn)
	}
	return AuditEntryBody{
		ID:          e.ID,
		Timestamp:   recordedTime(e.Timestamp),
		Action:      e.Action,
		Resource:    resource,
		Environment: e.Environment,
		Changes:     value(e.Changes),
		UserID:      e.ActorID,
		UserName:    actorName(e.Actor),
		ActorType:   e.ActorKind,
		Reason:      e.Reason,
		RequestID:   e.RequestID,
		Version:     e.Version,
	}
}

// AuditFilterInput is what narrows an audit trail.
type AuditFilterInput struct {
	PeriodInput
	Action            string `query:"action" doc:"The stored name of the fact, such as flag.enabled"`
	UserID            string `query:"userId" doc:"Of a person or a client"`
	ResourceType      string `query:"resourceType" enum:"flag,project,tenant,environment,member,oauth_client,subscription,user,invitation"`
	ResourceID        string `query:"resourceId" doc:"A flag's key, a subscription's tenant, or else an id"`
	EnvironmentFilter string `query:"environment" doc:"The name of an environment then"`
	Search            string `query:"q" maxLength:"200" doc:"Part of the resource's id or name as the entry has them, of the reason or of the userId, in either case"`
}

func (a *API) auditFilter(in AuditFilterInput) queries.AuditFilter {
	resource := in.ResourceID
	if in.ResourceType != "flag" { // whose key is taken as it is
		resource = a.personID(resource) // or the id of something else
	}
	return queries.AuditFilter{
		Action:       in.Action,
		UserID:       a.personID(in.UserID),
		ResourceType: in.ResourceType,
		ResourceID:   resource,
		Environment:  in.EnvironmentFilter,
		From:         in.From,
		To:           in.To,
		Search:       in.Search,
	}
}

// AuditPageInput is how an audit trail is paged.
type AuditPageInput struct {
	AuditFilterInput
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"50" doc:"The most entries to answer"`
	Cursor string `query:"cursor" doc:"Where the page begins: from the Link of the page before"`
}

// auditOutput is a page of an audit trail.
type auditOutput[T any] struct {
	Link []string `header:"Link" doc:"The next page, where there may be one: rel=\"next\""`
	Body entries[T]
}

const auditPages = `Pages neither skip nor repeat facts while further ones arrive: newer ones are on the first page. A page may be short, or empty, before the
end: after some 3,000 facts that the filters leave out it ends. So follow ` + "`Link`" + ` until there is none.`

func (a *API) addAudit() {
	op := operation("GET", auditRoute, "get-audit-trail", "Audit", "Every change of anything in the tenant, newest first")
	op.Description = auditPages
	register(a, readAudit, op, func(ctx context.Context, in *struct {
		TenantInput
		AuditPageInput
	}) (*auditOutput[AuditEntryBody], error) {
		return tenantAudit(ctx, a, principalOf(ctx).tenant.ID(), in.AuditPageInput, showAuditEntry)
	})
	op = operation("GET", platformAuditRoute, "get-platform-audit-trail", "Platform",
		"Every change of anything in all tenants and on the platform, newest first")
	op.Description = auditPages + " The trail of a tenant stays when that is deleted."
	register(a, onPlatform(events.PlatformAdmin), op, func(ctx context.Context, in *struct {
		Tenant string `query:"tenantId" doc:"The changes in this tenant alone, deleted or not"`
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
	p, err := piecesOf(ctx, page, show)
	if err != nil {
		return nil, err
	}
	out := &auditOutput[T]{Body: entries[T]{p, empty}}
	if next != nil {
		out.Link = nextPage(ctx, "cursor", writeCursor(trail, next))
	}
	return out, nil
}

// writeCursor makes the text of a cursor, which is good for one trail.
func writeCursor(trail string, c queries.AuditCursor) string {
	text := trail
	for _, number := range c {
		text += " " + strconv.FormatInt(number, 10)
	}
	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

// readCursor reads what writeCursor wrote; it is nil for an empty text. The error is a problem.
func readCursor(trail, text string, numbers int) (queries.AuditCursor, error) {
	if text == "" {
		return nil, nil
	}
	refused := invalid(map[string]string{"cursor": "is none of this trail: take it from the Link of a page"})
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
