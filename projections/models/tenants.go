package models

import (
	"fmt"
	"strings"

	"flagledger/events"
	"flagledger/projections"
)

var tenants = projections.Projection{
	Name:    "tenants",
	Version: 9, // with recorded times alone
	Tables:  []string{"tenants", "environments", "members", "environment_spans", "member_spans"},
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
create index on members (tenant_id);` + tenantSpans,
	FactPrefixes: []string{"tenant."},
	Apply:        applyTenant,
}

var (
	addTenant = projections.NewStatement(
		"id text, name text, is_sandbox boolean, subscription json, created_by text, recorded timestamptz",
		`insert into tenants (id, name, is_sandbox, subscription, created_by, created_at)
			select id, name, is_sandbox, subscription, created_by, recorded from given`,
	)
	setSubscription = projections.NewStatement("id text, subscription json",
		`update tenants t set subscription = g.subscription from given g where t.id = g.id`)
	renameTenant = projections.NewStatement("id text, name text",
		`update tenants t set name = coalesce(g.name, t.name) from given g where t.id = g.id`)
	deleteTenant = projections.NewStatement("id text, recorded timestamptz",
		`update tenants t set deleted_at = g.recorded from given g where t.id = g.id`)
)

func applyTenant(b *projections.Batch, e events.Recorded) error {
	fact, ok := e.Fact.(events.TenantFact)
	if !ok {
		return fmt.Errorf("%s in stream %s does not belong to a tenant", e.Name, e.Stream)
	}
	id := strings.TrimPrefix(e.Stream, events.TenantStream(""))
	switch fact := fact.(type) {
	case events.TenantCreated:
		b.Queue(addTenant, id, fact.Name, fact.Sandbox, fact.FirstSubscription(), e.Actor.ID, e.At)
	case events.SubscriptionChanged:
		b.Queue(setSubscription, id, fact.To)
	case events.EnvironmentAdded:
		b.Queue(addEnvironment, fact.Environment.ID, id, fact.Environment.Name, e.Revision, e.At)
	case events.MemberAdded:
		b.Queue(addMember, id, fact.UserID, fact.Role, false, e.Revision, e.At)
	case events.TenantUpdated:
		b.Queue(renameTenant, id, to(fact.Name))
	case events.TenantDeleted:
		b.Queue(deleteTenant, id, e.At)
		b.Queue(endEnvironments, id, e.At)
		b.Queue(endMembers, id, e.At)
	case events.EnvironmentDeleted:
		b.Queue(removeEnvironment, fact.Environment.ID, e.At)
	case events.MemberInvited:
		b.Queue(addMember, id, fact.ID, fact.Role, true, e.Revision, e.At)
	case events.MemberJoined:
		b.Queue(removeJoined, id, fact.ID, fact.UserID, e.At)
		b.Queue(addMember, id, fact.UserID, fact.Role, false, e.Revision, e.At)
	case events.MemberRoleChanged:
		b.Queue(changeMember, id, fact.UserID, fact.To, e.Revision, e.At)
	case events.MemberRemoved:
		b.Queue(removeMember, id, fact.UserID, e.At)
	case events.OAuthClientCreated, events.OAuthSecretRotated, events.OAuthClientDeleted:
	}
	return nil
}
