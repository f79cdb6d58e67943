package projections

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
)

var tenants = Projection{
	Name:    "tenants",
	version: 1,
	tables:  []string{"tenants", "environments", "members"},
	schema: `
create table tenants (
    id         text        primary key,
    name       text        not null,
    is_sandbox boolean     not null,
    plan       text        not null,
    status     text        not null, -- of the subscription
    created_by text        not null,
    created_at timestamptz not null
);
create table environments (
    id         text        primary key,
    tenant_id  text        not null,
    name       text        not null,
    position   bigint      not null, -- the tenant's revision with it: the order of environments
    created_at timestamptz not null,
    unique (tenant_id, name)
);
create table members (
    tenant_id  text        not null,
    user_id    text        not null,
    role       text        not null,
    created_at timestamptz not null,
    primary key (user_id, tenant_id)
);`,
	streams: []string{"tenant."},
	apply:   applyTenant,
}

func applyTenant(b *pgx.Batch, e events.Recorded) error {
	fact, ok := e.Fact.(events.TenantFact)
	if !ok {
		return fmt.Errorf("%s in stream %s is no fact of a tenant", e.Name, e.Stream)
	}
	id := strings.TrimPrefix(e.Stream, events.TenantStream(""))
	switch fact := fact.(type) {
	case events.TenantCreated:
		b.Queue(`insert into tenants values ($1, $2, $3, $4, 'active', $5, $6)`, id, fact.Name, fact.Sandbox, fact.Plan, e.Actor.ID, e.Time)
	case events.EnvironmentAdded:
		b.Queue(`insert into environments values ($1, $2, $3, $4, $5)`, fact.Environment.ID, id, fact.Environment.Name, e.Revision, e.Time)
	case events.MemberAdded:
		b.Queue(`insert into members values ($1, $2, $3, $4)`, id, fact.UserID, fact.Role, e.Time)
	}
	return nil
}
