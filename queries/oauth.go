package queries

import (
	"context"
	"time"
)

// OAuthClient is an OAuth client of a tenant.
type OAuthClient struct {
	ID        string
	Name      string
	Scopes    []string
	CreatedAt time.Time
}

// OAuthClients lists a tenant's OAuth clients, oldest first.
func (q *Queries) OAuthClients(ctx context.Context, tenantID string, page Page) (*List[OAuthClient], error) {
	return list[OAuthClient](ctx, q.db, `id, name, scopes, created_at`,
		`from read.oauth_clients where tenant_id = $1 and not deleted`, `created_at, id`, page, tenantID)
}
