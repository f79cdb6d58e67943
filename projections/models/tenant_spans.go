package models

import "flagledger/projections"

// tenantSpans stores what a tenant's lists showed at any time. A row is valid from the recorded time since up to, but
// excluding, until.
const tenantSpans = `
create table environment_spans (
    tenant_id text        not null,
    id        text        not null,
    name      text        not null,
    color     text        not null,
    version   bigint      not null, -- as in environments
    place     int         not null,
    since     timestamptz not null,
    until     timestamptz not null default 'infinity',
    primary key (tenant_id, id, version)
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
		"id text, tenant_id text, name text, color text, version bigint, recorded timestamptz",
		`, added as (insert into environments (id, tenant_id, name, color, version, place, created_at)
			select id, tenant_id, name, color, version, 0, recorded from given)
		insert into environment_spans (tenant_id, id, name, color, version, place, since)
		select tenant_id, id, name, color, version, 0, recorded from given`,
	)
	arrangeEnvironments = projections.NewStatement(
		"ids text[], colors text[], version bigint, recorded timestamptz",
		`, arranged as (select e.tenant_id, e.id, e.name, e.version as before, a.color, a.place, g.version, g.recorded
			from given g, unnest(g.ids, g.colors) with ordinality as a (id, color, place), environments e where e.id = a.id),
			moved as (update environments e set color = a.color, version = a.version, place = a.place
				from arranged a where e.id = a.id),
			ended as (update environment_spans s set until = a.recorded from arranged a
				where s.tenant_id = a.tenant_id and s.id = a.id and s.version = a.before)
		insert into environment_spans (tenant_id, id, name, color, version, place, since)
		select tenant_id, id, name, color, version, place, recorded from arranged`,
	)
	removeEnvironment = projections.NewStatement(
		"id text, recorded timestamptz",
		`, removed as (delete from environments e using given g where e.id = g.id
			returning e.tenant_id, e.id, e.version, g.recorded)
		update environment_spans s set until = r.recorded from removed r where s.tenant_id = r.tenant_id
			and s.id = r.id and s.version = r.version`,
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
