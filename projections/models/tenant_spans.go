package models

import "flagledger/projections"

// tenantSpans stores what a tenant's lists showed at any time. A row is valid from the recorded time since up to, but
// excluding, until.
const tenantSpans = `
create table environment_spans (
    tenant_id text        not null,
    id        text        not null,
    name      text        not null,
    position  bigint      not null, -- as in environments
    since     timestamptz not null,
    until     timestamptz not null default 'infinity',
    primary key (tenant_id, position)
);
create table member_spans (
    tenant_id  text        not null,
    user_id    text        not null,
    role       text        not null,
    pending    boolean     not null,
    joined_as  text, -- the person that a pending member has become since
    created_at timestamptz not null,
    position   bigint      not null, -- as in members
    version    bigint      not null, -- the tenant's revision that the row began with
    since      timestamptz not null,
    until      timestamptz not null default 'infinity',
    primary key (tenant_id, user_id, version)
);`

var (
	addEnvironment = projections.NewStatement(
		"id text, tenant_id text, name text, position bigint, recorded timestamptz",
		`, added as (insert into environments (id, tenant_id, name, position, created_at)
			select id, tenant_id, name, position, recorded from given)
		insert into environment_spans (tenant_id, id, name, position, since) select tenant_id, id, name, position, recorded
			from given`,
	)
	removeEnvironment = projections.NewStatement(
		"id text, recorded timestamptz",
		`, removed as (delete from environments e using given g where e.id = g.id
			returning e.tenant_id, e.position, g.recorded)
		update environment_spans s set until = r.recorded from removed r where s.tenant_id = r.tenant_id
			and s.position = r.position`,
	)
	endEnvironments = projections.NewStatement("tenant_id text, recorded timestamptz",
		`, removed as (delete from environments e using given g where e.tenant_id = g.tenant_id)
		update environment_spans s set until = g.recorded from given g where s.tenant_id = g.tenant_id
			and s.until = 'infinity'`)

	// addMember does nothing if the person is already a member.
	addMember = projections.NewStatement(
		"tenant_id text, user_id text, role text, pending boolean, position bigint, recorded timestamptz",
		`, new as (select * from given g where not exists (select from members m where m.tenant_id = g.tenant_id
			and m.user_id = g.user_id)),
			added as (insert into members (tenant_id, user_id, role, pending, created_at, position)
				select tenant_id, user_id, role, pending, recorded, position from new)
		insert into member_spans (tenant_id, user_id, role, pending, position, created_at, version, since)
		select tenant_id, user_id, role, pending, position, recorded, position, recorded from new`,
	)
	changeMember = projections.NewStatement(
		"tenant_id text, user_id text, role text, version bigint, recorded timestamptz",
		`, changed as (update members m set role = g.role from given g where m.tenant_id = g.tenant_id
			and m.user_id = g.user_id returning m.*, g.version, g.recorded),
			ended as (update member_spans s set until = g.recorded from `+lastOfMember+` and s.until = 'infinity')
		insert into member_spans (tenant_id, user_id, role, pending, created_at, position, version, since)
		select tenant_id, user_id, role, pending, created_at, position, version, recorded from changed`,
	)
	removeMember = projections.NewStatement("tenant_id text, user_id text, recorded timestamptz",
		`, removed as (delete from members m using given g where m.tenant_id = g.tenant_id and m.user_id = g.user_id)
		update member_spans s set until = g.recorded from `+lastOfMember+` and s.until = 'infinity'`)
	removeJoined = projections.NewStatement("tenant_id text, user_id text, joined_as text, recorded timestamptz",
		`, removed as (delete from members m using given g where m.tenant_id = g.tenant_id and m.user_id = g.user_id)
		update member_spans s set joined_as = g.joined_as, until = least(s.until, g.recorded) from given g
			where s.tenant_id = g.tenant_id and s.user_id = g.user_id`)
	endMembers = projections.NewStatement("tenant_id text, recorded timestamptz",
		`, removed as (delete from members m using given g where m.tenant_id = g.tenant_id)
		update member_spans s set until = g.recorded from given g where s.tenant_id = g.tenant_id and s.until = 'infinity'`)
)

// lastOfMember joins the last span of each given member, found first as in flag_spans.go.
const lastOfMember = `(select *, (select version from member_spans s where s.tenant_id = given.tenant_id
	and s.user_id = given.user_id order by version desc limit 1) as last
		from given offset 0) g
	where s.tenant_id = g.tenant_id and s.user_id = g.user_id and s.version = g.last`
