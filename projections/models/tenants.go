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
	Version: 10, // with the arrangement of environments
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
    color      text        not null,
    version    bigint      not null, -- the tenant's revision that added or arranged it
    place      int         not null, -- in that arrangement; the order of environments is by version and place
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
		b.Queue(addTenant, pgx.NamedArgs{
			"id": id, "name": fact.Name, "is_sandbox": fact.Sandbox, "subscription": fact.FirstSubscription(),
			"created_by": e.Actor.ID, "recorded": e.At,
		})
	case events.SubscriptionChanged:
		b.Queue(setSubscription, pgx.NamedArgs{"id": id, "subscription": fact.To})
	case events.EnvironmentAdded:
		b.Queue(addEnvironment, pgx.NamedArgs{
			"id": fact.Environment.ID, "tenant_id": id, "name": fact.Environment.Name,
			"color": fact.FirstColor(), "version": e.Revision, "recorded": e.At,
		})
	case events.EnvironmentsArranged:
		ids, colors := make([]string, len(fact.To)), make([]string, len(fact.To))
		for i, arranged := range fact.To {
			ids[i], colors[i] = arranged.Environment.ID, arranged.Color
		}
		b.Queue(arrangeEnvironments, pgx.NamedArgs{"ids": ids, "colors": colors, "version": e.Revision, "recorded": e.At})
	case events.MemberAdded:
		b.Queue(addMember, pgx.NamedArgs{
			"tenant_id": id, "user_id": fact.UserID, "role": fact.Role, "pending": false, "position": e.Revision,
			"recorded": e.At,
		})
	case events.TenantUpdated:
		b.Queue(renameTenant, pgx.NamedArgs{"id": id, "name": to(fact.Name)})
	case events.TenantDeleted:
		b.Queue(deleteTenant, pgx.NamedArgs{"id": id, "recorded": e.At})
		b.Queue(endEnvironments, pgx.NamedArgs{"tenant_id": id, "recorded": e.At})
		b.Queue(endMembers, pgx.NamedArgs{"tenant_id": id, "recorded": e.At})
	case events.EnvironmentDeleted:
		b.Queue(removeEnvironment, pgx.NamedArgs{"id": fact.Environment.ID, "recorded": e.At})
	case events.MemberInvited:
		b.Queue(addMember, pgx.NamedArgs{
			"tenant_id": id, "user_id": fact.ID, "role": fact.Role, "pending": true, "position": e.Revision,
			"recorded": e.At,
		})
	case events.MemberJoined:
		b.Queue(removeJoined, pgx.NamedArgs{
			"tenant_id": id, "user_id": fact.ID, "joined_as": fact.UserID, "recorded": e.At,
		})
		b.Queue(addMember, pgx.NamedArgs{
			"tenant_id": id, "user_id": fact.UserID, "role": fact.Role, "pending": false, "position": e.Revision,
			"recorded": e.At,
		})
	case events.MemberRoleChanged:
		b.Queue(changeMember, pgx.NamedArgs{
			"tenant_id": id, "user_id": fact.UserID, "role": fact.To, "version": e.Revision, "recorded": e.At,
		})
	case events.MemberRemoved:
		b.Queue(removeMember, pgx.NamedArgs{"tenant_id": id, "user_id": fact.UserID, "recorded": e.At})
	case events.FlagRulesChanged, events.OAuthClientCreated, events.OAuthSecretRotated, events.OAuthClientDeleted,
		events.EvaluationKeyAdded, events.EvaluationKeyChanged, events.EvaluationKeyRotated, events.EvaluationKeyRemoved:
	}
	return nil
}
