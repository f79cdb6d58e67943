package models

import (
	"fmt"
	"strings"

	"flagledger/events"
	"flagledger/projections"
)

var projects = projections.Projection{
	Name:    "projects",
	Version: 2, // with what the list held at any time
	Tables:  []string{"projects", "project_spans"},
	Schema: `
create table projects (
    id          text        primary key,
    tenant_id   text        not null,
    name        text        not null,
    description text        not null,
    color       text        not null,
    created_at  timestamptz not null,
    updated_at  timestamptz not null
);
create index on projects (tenant_id, created_at);
create table project_spans ( -- holds from the recorded time since up to, but not at, until
    id          text        not null,
    version     bigint      not null, -- the project's revision that the row began with
    tenant_id   text        not null,
    name        text        not null,
    description text        not null,
    color       text        not null,
    created_at  timestamptz not null,
    updated_at  timestamptz not null,
    since       timestamptz not null,
    until       timestamptz not null default 'infinity',
    primary key (id, version)
);
create index on project_spans (tenant_id, created_at);`,
	FactPrefixes: []string{"project."},
	Apply:        applyProject,
}

func applyProject(b *projections.Batch, e events.Recorded) error {
	fact, ok := e.Fact.(events.ProjectFact)
	if !ok {
		return fmt.Errorf("%s in stream %s is no fact of a project", e.Name, e.Stream)
	}
	id := strings.TrimPrefix(e.Stream, events.ProjectStream(""))
	switch fact := fact.(type) {
	case events.ProjectCreated:
		b.Queue(`insert into projects (id, tenant_id, name, description, color, created_at, updated_at) values ($1, $2, $3, $4, $5, $6, $6)`,
			id, fact.TenantID, fact.Name, fact.Description, fact.Color, e.Time)
	case events.ProjectUpdated:
		b.Queue(`update projects set name = coalesce($2, name), description = coalesce($3, description), color = coalesce($4, color), updated_at = $5 where id = $1`,
			id, to(fact.Name), to(fact.Description), to(fact.Color), e.Time)
	case events.ProjectDeleted:
		b.Queue(`delete from projects where id = $1`, id)
	}
	// What is left of the project begins another span.
	b.Queue(`with ended as (update project_spans set until = $3 where id = $1 and version = (select max(version) from project_spans where id = $1))
			insert into project_spans (id, version, tenant_id, name, description, color, created_at, updated_at, since)
			select id, $2, tenant_id, name, description, color, created_at, updated_at, $3 from projects where id = $1`, id, e.Revision, e.At)
	return nil
}
