package models

import (
	"strings"

	"flagledger/events"
	"flagledger/projections"
)

// audit is the trail of all facts: an entry for each fact with its changes.
var audit = projections.Projection{
	Name:    "audit",
	Version: 6, // with recorded times alone
	Tables:  []string{"audit", "audit_names", "audit_nodes"},
	Ordered: true, // by n
	Schema: `
create table audit (
    tenant_id     text   collate "C" not null, -- empty for facts about the platform
    n             bigint             not null, -- of the tenant's entries, in the order of the log: 0, 1, 2 and so on
    commit        bigint             not null, -- the position in the log
    prepare       bigint             not null,
    id            uuid               not null,
    recorded      timestamptz        not null, -- never before that of an earlier entry of the tenant
    action        text   collate "C" not null,
    resource_type text   collate "C" not null,
    resource_id   text   collate "C" not null,
    resource_name text, -- then; null for people, whose names are in the directory alone
    environment   text   collate "C", -- its name then
    changes       json               not null,
    actor_kind    text   collate "C" not null,
    actor_id      text   collate "C" not null,
    request_id    text   collate "C" not null,
    reason        text               not null,
    version       bigint             not null, -- the number of the fact in its stream
    leaf          bytea              not null, -- events.LeafHash
    time          timestamptz generated always as (recorded) stored, -- read by nodes of the previous release alone
    primary key (tenant_id, n)
);
create table audit_names (
    stream    text collate "C" not null,
    part      text collate "C" not null, -- of what the stream is of; empty for the whole
    tenant_id text             not null,
    name      text             not null, -- as the facts so far have it; of a member the role
    primary key (stream, part)
);` + auditNodesSchema,
	Indexes: `
create index if not exists audit_position on audit (commit, prepare);
create index if not exists audit_id on audit (id);
create index if not exists audit_resource on audit (tenant_id, resource_id, n);
create index if not exists audit_actor on audit (tenant_id, actor_id, n);
create index if not exists audit_action on audit (tenant_id, action, n) where action <> 'flag.enabled' and action <> 'flag.disabled'; -- most entries are of these
create index if not exists audit_environment on audit (tenant_id, environment, n) where environment is not null;
create index if not exists audit_type on audit (tenant_id, resource_type, n) where resource_type <> 'flag'; -- most entries are of flags
create index if not exists audit_recorded on audit (tenant_id, recorded, n) where n % 256 = 0; -- from one of these an entry of a time is near`,
	FactPrefixes: allFacts(),
	New:          func() projections.Model { return newTrail() },
}

// allFacts returns the prefixes of the names of all facts.
func allFacts() (prefixes []string) {
	for _, prefix := range events.StreamPrefixes() {
		prefixes = append(prefixes, strings.TrimSuffix(prefix, "-")+".")
	}
	return prefixes
}
