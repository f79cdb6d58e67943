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
	Version: 1,
	Tables:  []string{"projects"},
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
create index on projects (tenant_id, created_at);`,
	FactPrefixes: []string{"project."},
	Apply:        applyProject,
}

func applyProject(b *pgx.Batch, e events.Recorded) error {
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
	return nil
}
