package models

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
	"flagledger/projections"
)

var projects = projections.Projection{
	Name:    "projects",
	Version: 3, // with recorded times alone
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

var (
	addProject = projections.NewStatement(
		"id text, tenant_id text, name text, description text, color text, recorded timestamptz",
		`insert into projects (id, tenant_id, name, description, color, created_at, updated_at)
			select id, tenant_id, name, description, color, recorded, recorded from given`,
	)
	updateProject = projections.NewStatement(
		"id text, name text, description text, color text, recorded timestamptz",
		`update projects p set name = coalesce(g.name, p.name), description = coalesce(g.description, p.description), color =
			coalesce(g.color, p.color), updated_at = g.recorded
			from given g where p.id = g.id`,
	)
	deleteProject = projections.NewStatement("id text", `delete from projects p using given g where p.id = g.id`)
	// beginProjectSpan begins the next span from the project's current row.
	beginProjectSpan = projections.NewStatement("id text, version bigint, recorded timestamptz",
		`, ended as (update project_spans s set until = g.recorded
			from (select *, (select version from project_spans s where s.id = given.id order by version desc limit 1) as last
				from given offset 0) g
			where s.id = g.id and s.version = g.last)
		insert into project_spans (id, version, tenant_id, name, description, color, created_at, updated_at, since)
		select p.id, g.version, p.tenant_id, p.name, p.description, p.color, p.created_at, p.updated_at, g.recorded
			from given g join projects p on p.id = g.id`)
)

func applyProject(b *projections.Batch, e events.Recorded) error {
	fact, ok := e.Fact.(events.ProjectFact)
	if !ok {
		return fmt.Errorf("%s in stream %s does not belong to a project", e.Name, e.Stream)
	}
	id := strings.TrimPrefix(e.Stream, events.ProjectStream(""))
	switch fact := fact.(type) {
	case events.ProjectCreated:
		b.Queue(addProject, pgx.NamedArgs{
			"id": id, "tenant_id": fact.TenantID, "name": fact.Name, "description": fact.Description, "color": fact.Color,
			"recorded": e.At,
		})
	case events.ProjectUpdated:
		b.Queue(updateProject, pgx.NamedArgs{
			"id": id, "name": to(fact.Name), "description": to(fact.Description), "color": to(fact.Color),
			"recorded": e.At,
		})
	case events.ProjectDeleted:
		b.Queue(deleteProject, pgx.NamedArgs{"id": id})
	}
	b.Queue(beginProjectSpan, pgx.NamedArgs{"id": id, "version": e.Revision, "recorded": e.At})
	return nil
}
