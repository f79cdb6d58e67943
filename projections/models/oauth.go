package models

import (
	"fmt"
	"strings"

	"flagledger/events"
	"flagledger/projections"
)

var oauthClients = projections.Projection{
	Name:    "oauth_clients",
	Version: 1,
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

func applyOAuthClient(b *projections.Batch, e events.Recorded) error {
	fact, _ := e.Fact.(events.OAuthFact)
	switch fact := fact.(type) {
	case events.OAuthClientCreated:
		tenant := strings.TrimPrefix(e.Stream, events.TenantStream(""))
		b.Queue(`insert into oauth_clients (id, tenant_id, name, scopes, deleted, created_at) values ($1, $2, $3, $4, false, $5)`,
			fact.ClientID, tenant, fact.Name, fact.Scopes, e.Time)
	case events.OAuthSecretRotated:
	case events.OAuthClientDeleted:
		b.Queue(`update oauth_clients set deleted = true where id = $1`, fact.ClientID)
	default:
		return fmt.Errorf("%s in stream %s is no fact of an OAuth client", e.Name, e.Stream)
	}
	return nil
}
