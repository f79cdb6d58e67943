package models

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
	"flagledger/events/state"
	"flagledger/projections"
)

var evaluationKeys = projections.Projection{
	Name:    "evaluation_keys",
	Version: 1,
	Tables:  []string{"evaluation_keys"},
	Schema: `
create table evaluation_keys (
    id             text        primary key,
    tenant_id      text        not null,
    environment_id text        not null,
    key            jsonb       not null, -- its first fact, with later changes applied
    created_by     text        not null,
    created_at     timestamptz not null,
    deleted        boolean     not null -- usage still names it
);
create index on evaluation_keys (tenant_id, created_at);`,
	FactPrefixes: []string{"tenant.evaluation_key_", "tenant.environment_deleted"},
	Apply:        applyEvaluationKey,
}

var (
	addEvaluationKey = projections.NewStatement(
		"id text, tenant_id text, environment_id text, key jsonb, created_by text, recorded timestamptz",
		`insert into evaluation_keys (id, tenant_id, environment_id, key, created_by, created_at, deleted)
			select id, tenant_id, environment_id, key, created_by, recorded, false from given`,
	)
	// changeEvaluationKey sets each changed field to what it was changed to.
	changeEvaluationKey = projections.NewStatement("id text, changes jsonb",
		`update evaluation_keys k set key = k.key ||
				(select coalesce(jsonb_object_agg(key, value -> 'to'), '{}') from jsonb_each(g.changes)
					where jsonb_typeof(value) = 'object')
			from given g where k.id = g.id`)
	rotateEvaluationKey = projections.NewStatement("id text, material jsonb",
		`update evaluation_keys k set key = k.key || g.material from given g where k.id = g.id`)
	deleteEvaluationKey = projections.NewStatement("id text",
		`update evaluation_keys k set deleted = true from given g where k.id = g.id`)
	deleteEvaluationKeys = projections.NewStatement("environment_id text",
		`update evaluation_keys k set deleted = true from given g where k.environment_id = g.environment_id`)
)

func applyEvaluationKey(b *projections.Batch, e events.Recorded) error {
	if fact, ok := e.Fact.(events.EnvironmentDeleted); ok {
		b.Queue(deleteEvaluationKeys, pgx.NamedArgs{"environment_id": fact.Environment.ID})
		return nil
	}
	fact, ok := e.Fact.(events.EvaluationKeyFact)
	if !ok {
		return fmt.Errorf("%s in stream %s does not belong to an evaluation key", e.Name, e.Stream)
	}
	id := state.EvaluationKeyID(fact)
	switch fact := fact.(type) {
	case events.EvaluationKeyAdded:
		b.Queue(addEvaluationKey, pgx.NamedArgs{
			"id": id, "tenant_id": strings.TrimPrefix(e.Stream, events.TenantStream("")),
			"environment_id": fact.Environment.ID, "key": fact, "created_by": e.Actor.ID, "recorded": e.At,
		})
	case events.EvaluationKeyChanged:
		b.Queue(changeEvaluationKey, pgx.NamedArgs{"id": id, "changes": fact})
	case events.EvaluationKeyRotated:
		b.Queue(rotateEvaluationKey, pgx.NamedArgs{"id": id, "material": fact.KeyMaterial})
	case events.EvaluationKeyRemoved:
		b.Queue(deleteEvaluationKey, pgx.NamedArgs{"id": id})
	}
	return nil
}
