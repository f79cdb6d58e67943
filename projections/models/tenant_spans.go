package models

// tenantSpans are tables of what a tenant's lists held at any time. A row holds from the recorded time since up to, but not at, until.
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

const (
	addEnvironment = `with added as (
			insert into environments (id, tenant_id, name, position, created_at) values ($1, $2, $3, $4, $5) returning *)
		insert into environment_spans (tenant_id, id, name, position, since) select tenant_id, id, name, position, $6 from added`
	removeEnvironment = `with removed as (delete from environments where id = $1 returning *)
		update environment_spans s set until = $2 from removed r where s.tenant_id = r.tenant_id and s.position = r.position`
	endEnvironments = `with removed as (delete from environments where tenant_id = $1)
		update environment_spans set until = $2 where tenant_id = $1 and until = 'infinity'`

	// addMember does nothing for one who is a member.
	addMember = `with added as (
			insert into members (tenant_id, user_id, role, pending, created_at, position) values ($1, $2, $3, $4, $5, $6)
			on conflict (user_id, tenant_id) do nothing returning *)
		insert into member_spans (tenant_id, user_id, role, pending, position, created_at, version, since)
		select tenant_id, user_id, role, pending, position, created_at, position, $7 from added`
	changeMember = `with changed as (update members set role = $3 where tenant_id = $1 and user_id = $2 returning *),
			ended as (update member_spans set until = $5 where tenant_id = $1 and user_id = $2 and until = 'infinity'
				and version = (select max(version) from member_spans where tenant_id = $1 and user_id = $2))
		insert into member_spans (tenant_id, user_id, role, pending, created_at, position, version, since)
		select tenant_id, user_id, role, pending, created_at, position, $4, $5 from changed`
	removeMember = `with removed as (delete from members where tenant_id = $1 and user_id = $2)
		update member_spans set until = $3 where tenant_id = $1 and user_id = $2 and until = 'infinity'
			and version = (select max(version) from member_spans where tenant_id = $1 and user_id = $2)`
	removeJoined = `with removed as (delete from members where tenant_id = $1 and user_id = $2)
		update member_spans set joined_as = $3, until = least(until, $4) where tenant_id = $1 and user_id = $2`
	endMembers = `with removed as (delete from members where tenant_id = $1)
		update member_spans set until = $2 where tenant_id = $1 and until = 'infinity'`
)
