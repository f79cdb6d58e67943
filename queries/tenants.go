package queries

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
)

// Tenant is a tenant with its contact address.
type Tenant struct {
	ID           string
	Name         string
	PrimaryEmail string
	ContactName  string
	IsSandbox    bool
	Subscription events.Subscription
	CreatedAt    time.Time
}

// OwnTenant is a tenant with a person's role in it.
type OwnTenant struct {
	Tenant
	Role events.Role
}

const (
	tenantColumns = `t.id, t.name, coalesce(c.primary_email, creator.email, '') as primary_email, coalesce(c.contact_name,
		'') as contact_name,
		t.is_sandbox, t.subscription, t.created_at`
	tenantFrom = `from read.tenants t left join keep.tenant_contacts c on c.tenant_id = t.id left
		join keep.people creator on creator.user_id = t.created_by `
)

// TenantsOf lists the tenants of a person, oldest first; with createdAlone only those they created.
func (q *Queries) TenantsOf(
	ctx context.Context, userID string, createdAlone bool, page Page,
) (*List[OwnTenant], error) {
	return list[OwnTenant](ctx, q.db, tenantColumns+`, m.role`,
		tenantFrom+`join read.members m on m.tenant_id = t.id where m.user_id = $1 and (not $2 or t.created_by = $1)`,
		`t.created_at, t.id`, page, userID, createdAlone)
}

// CreatedBy lists the ids of all tenants a person created, also deleted ones. It may miss the latest.
func (q *Queries) CreatedBy(ctx context.Context, userID string) ([]string, error) {
	rows, err := q.db.Query(ctx, `select id from read.tenants where created_by = $1`, userID)
	if err != nil {
		return nil, classify(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return ids, classify(err)
}

// CountCreated counts the tenants a person created: those not deleted, and all since a time. It may miss the latest.
func (q *Queries) CountCreated(ctx context.Context, userID string, since time.Time) (tenants, recent int, err error) {
	err = q.db.QueryRow(ctx, `select count(*) filter (where deleted_at is null), count(*) filter (where created_at >= $2)
		from read.tenants where created_by = $1`,
		userID, since).
		Scan(&tenants, &recent)
	return tenants, recent, classify(err)
}

// Customers lists the ids of the tenants that are customers of the payment provider, or were when they were deleted in
// the last 90 days.
func (q *Queries) Customers(ctx context.Context) ([]string, error) {
	rows, err := q.db.Query(
		ctx,
		`select id from read.tenants where (deleted_at is null or deleted_at > now() - interval '90 days')
		and subscription ->> 'customerId' <> '' order by id`,
	)
	if err != nil {
		return nil, classify(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return ids, classify(err)
}

// Tenant reads one tenant, or returns ErrNotFound.
func (q *Queries) Tenant(ctx context.Context, id string) (Tenant, error) {
	return one[Tenant](ctx, q.db, `select `+tenantColumns+` `+tenantFrom+`where t.id = $1`, id)
}

// Environment is a row of a list of environments.
type Environment struct{ Name, Color string }

// Environments lists a tenant's environments at a time, in its order.
func (q *Queries) Environments(
	ctx context.Context, tenantID string, at time.Time, page Page,
) (*List[Environment], error) {
	from, args := `from read.environments where tenant_id = $1`, []any{tenantID}
	if !at.IsZero() {
		if err := q.WaitUntilCurrent(ctx, at, "tenant."); err != nil {
			return nil, err
		}
		from, args = `from read.environment_spans where tenant_id = $1 and since <= $2 and until > $2`, append(args, at)
	}
	return list[Environment](ctx, q.db, `name, color`, from, `version, place`, page, args...)
}

// HasTenant returns ErrNotFound unless the tenant exists and is not deleted.
func (q *Queries) HasTenant(ctx context.Context, id string) error {
	var exists bool
	err := q.db.QueryRow(ctx, `select exists (select from read.tenants where id = $1 and deleted_at is null)`, id).
		Scan(&exists)
	if err == nil && !exists {
		return fmt.Errorf("%w: no tenant has the id %s", ErrNotFound, id)
	}
	return classify(err)
}
