package models

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
	"flagledger/projections"
)

var oauthClients = projections.Projection{
	Name:    "oauth_clients",
	Version: 2, // with recorded times
	Tables:  []string{"oauth_clients"},
	Schema: `
create table oauth_clients (
    id         text        primary key,
    tenant_id  text        not null,
    name       text        not null,
    scopes     text[]      not null,
    deleted    boolean     not null, -- histories still name it
    created_at timestamptz not null
);
create index on oauth_clients (tenant_id, created_at);`,
	FactPrefixes: []string{"tenant.oauth_"},
	Apply:        applyOAuthClient,
}

var (
	addOAuthClient = projections.NewStatement(
		"id text, tenant_id text, name text, scopes text[], recorded timestamptz",
		`insert into oauth_clients (id, tenant_id, name, scopes, deleted, created_at)
			select id, tenant_id, name, scopes, false, recorded from given`,
	)
	deleteOAuthClient = projections.NewStatement("id text",
		`update oauth_clients c set deleted = true from given g where c.id = g.id`)
)

func applyOAuthClient(b *projections.Batch, e events.Recorded) error {
	fact, ok := e.Fact.(events.OAuthFact)
	if !ok {
		return fmt.Errorf("%s in stream %s does not belong to an OAuth client", e.Name, e.Stream)
	}
	switch fact := fact.(type) {
	case events.OAuthClientCreated:
		tenant := strings.TrimPrefix(e.Stream, events.TenantStream(""))
		b.Queue(addOAuthClient, pgx.NamedArgs{
			"id": fact.ClientID, "tenant_id": tenant, "name": fact.Name, "scopes": fact.Scopes, "recorded": e.At,
		})
	case events.OAuthSecretRotated:
	case events.OAuthClientDeleted:
		b.Queue(deleteOAuthClient, pgx.NamedArgs{"id": fact.ClientID})
	}
	return nil
}
