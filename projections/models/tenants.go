package models

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
	"flagledger/projections"
)

var tenants = projections.Projection{
	Name:    "tenants",
	Version: 5, // with an index for the tenants that somebody created
	Tables:  []string{"tenants", "environments", "members"},
	Schema: `
create table tenants (
    id         text        primary key,
    name       text        not null,
    is_sandbox boolean     not null,
    subscription json      not null,
    created_by text        not null,
    created_at timestamptz not null,
    deleted_at timestamptz
);
create index on tenants (created_at, id);
create index on tenants (created_by);
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
    pending    boolean     not null, -- user_id is not a person's yet
    created_at timestamptz not null,
    position   bigint      not null, -- the tenant's revision with it: the order of members
    primary key (user_id, tenant_id)
);
create index on members (tenant_id);`,
	FactPrefixes: []string{"tenant."},
	Apply:        applyTenant,
}

func applyTenant(b *pgx.Batch, e events.Recorded) error {
	fact, ok := e.Fact.(events.TenantFact)
	if !ok {
		return fmt.Errorf("%s in stream %s is no fact of a tenant", e.Name, e.Stream)
	}
	id := strings.TrimPrefix(e.Stream, events.TenantStream(""))
	switch fact := fact.(type) {
	case events.TenantCreated:
		b.Queue(`insert into tenants (id, name, is_sandbox, subscription, created_by, created_at) values ($1, $2, $3, $4, $5, $6)`,
			id, fact.Name, fact.Sandbox, fact.FirstSubscription(), e.Actor.ID, e.Time)
	case events.SubscriptionChanged:
		b.Queue(`update tenants set subscription = $2 where id = $1`, id, fact.To)
	case events.EnvironmentAdded:
		b.Queue(`insert into environments (id, tenant_id, name, position, created_at) values ($1, $2, $3, $4, $5)`,
			fact.Environment.ID, id, fact.Environment.Name, e.Revision, e.Time)
	case events.MemberAdded:
		b.Queue(addMember, id, fact.UserID, fact.Role, false, e.Time, e.Revision)
	case events.TenantUpdated:
		b.Queue(`update tenants set name = coalesce($2, name) where id = $1`, id, to(fact.Name))
	case events.TenantDeleted:
		b.Queue(`update tenants set deleted_at = $2 where id = $1`, id, e.Time)
		b.Queue(`delete from environments where tenant_id = $1`, id)
		b.Queue(`delete from members where tenant_id = $1`, id)
	case events.EnvironmentDeleted:
		b.Queue(`delete from environments where id = $1`, fact.Environment.ID)
	case events.MemberInvited:
		b.Queue(addMember, id, fact.ID, fact.Role, true, e.Time, e.Revision)
	case events.MemberJoined:
		b.Queue(removeMember, id, fact.ID)
		b.Queue(addMember, id, fact.UserID, fact.Role, false, e.Time, e.Revision)
	case events.MemberRoleChanged:
		b.Queue(`update members set role = $3 where tenant_id = $1 and user_id = $2`, id, fact.UserID, fact.To)
	case events.MemberRemoved:
		b.Queue(removeMember, id, fact.UserID)
	case events.OAuthClientCreated, events.OAuthSecretRotated, events.OAuthClientDeleted:
	}
	return nil
}

const (
	addMember = `insert into members (tenant_id, user_id, role, pending, created_at, position) values ($1, $2, $3, $4, $5, $6)
		on conflict (user_id, tenant_id) do nothing`
	removeMember = `delete from members where tenant_id = $1 and user_id = $2`
)
