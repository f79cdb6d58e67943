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
	Version: 4, // fields as JSON, so that a new field needs no column
	Tables:  []string{"projects", "project_spans"},
	Schema: `
create table projects (
    id          text        primary key,
    tenant_id   text        not null,
    project     jsonb       not null, -- as its first fact and each change of it
    created_at  timestamptz not null,
    updated_at  timestamptz not null
);
create index on projects (tenant_id, created_at);
create table project_spans ( -- holds from the recorded time since up to, but not at, until
    id          text        not null,
    version     bigint      not null, -- the project's revision that the row began with
    tenant_id   text        not null,
    project     jsonb       not null,
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
	addProject = projections.NewStatement("id text, tenant_id text, project jsonb, recorded timestamptz",
		`insert into projects (id, tenant_id, project, created_at, updated_at)
			select id, tenant_id, project, recorded, recorded from given`)
	// updateProject sets each changed field to what it was changed to.
	updateProject = projections.NewStatement("id text, changes jsonb, recorded timestamptz",
		`update projects p set updated_at = g.recorded, project = p.project ||
				(select coalesce(jsonb_object_agg(key, value -> 'to'), '{}') from jsonb_each(g.changes))
			from given g where p.id = g.id`)
	deleteProject = projections.NewStatement("id text", `delete from projects p using given g where p.id = g.id`)
	// beginProjectSpan begins the next span from the project's current row.
	beginProjectSpan = projections.NewStatement("id text, version bigint, recorded timestamptz",
		`, ended as (update project_spans s set until = g.recorded
			from (select *, (select version from project_spans s where s.id = given.id order by version desc limit 1) as last
				from given offset 0) g
			where s.id = g.id and s.version = g.last)
		insert into project_spans (id, version, tenant_id, project, created_at, updated_at, since)
		select p.id, g.version, p.tenant_id, p.project, p.created_at, p.updated_at, g.recorded
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
		b.Queue(addProject, pgx.NamedArgs{"id": id, "tenant_id": fact.TenantID, "project": fact, "recorded": e.At})
	case events.ProjectUpdated:
		b.Queue(updateProject, pgx.NamedArgs{"id": id, "changes": fact, "recorded": e.At})
	case events.ProjectDeleted:
		b.Queue(deleteProject, pgx.NamedArgs{"id": id})
	}
	b.Queue(beginProjectSpan, pgx.NamedArgs{"id": id, "version": e.Revision, "recorded": e.At})
	return nil
}
