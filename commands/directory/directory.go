// Package directory keeps the names and addresses that facts leave out, so that they can be erased, and which tenant a person used last.
package directory

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/commands"
)

// Directory is the directory in a database. Its errors are *commands.Error of the kind Unavailable.
type Directory struct {
	db *pgxpool.Pool

	mu   sync.Mutex
	uses map[use]time.Time // that are not in the database yet
}

type use struct{ userID, tenantID string }

// New returns the directory in a database.
func New(db *pgxpool.Pool) *Directory { return &Directory{db: db, uses: map[use]time.Time{}} }

func unavailable(err error) error {
	return &commands.Error{Kind: commands.Unavailable, Detail: "the directory cannot be reached", Err: err}
}

// SetContact notes whom to write to about a tenant. An empty email stands for that of the tenant's creator.
func (d *Directory) SetContact(ctx context.Context, tenantID, email, name string) error {
	_, err := d.db.Exec(ctx, `insert into keep.tenant_contacts values ($1, nullif($2, ''), nullif($3, ''))
		on conflict (tenant_id) do update set primary_email = excluded.primary_email, contact_name = excluded.contact_name`, tenantID, email, name)
	if err != nil {
		return unavailable(err)
	}
	return nil
}

// Email returns a person's address, empty where none is known.
func (d *Directory) Email(ctx context.Context, userID string) (email string, err error) {
	err = d.db.QueryRow(ctx, `select coalesce(email, '') from keep.people where user_id = $1`, userID).Scan(&email)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return "", unavailable(err)
	}
	return email, nil
}

// NoteUse notes that a member uses a tenant now. It only remembers; Run writes it down.
func (d *Directory) NoteUse(userID, tenantID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.uses[use{userID, tenantID}] = time.Now()
}

// flushInterval is how often uses are written down.
const flushInterval = 5 * time.Second

// Run writes down the uses of tenants every five seconds until ctx ends, and then once more.
func (d *Directory) Run(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(flushInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := d.flush(ctx); err != nil && ctx.Err() == nil {
				log.Warn("the last uses of tenants could not be written down; they are kept for the next attempt", "err", err)
			}
		case <-ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			_ = d.flush(ctx)
			return
		}
	}
}

func (d *Directory) flush(ctx context.Context) error {
	d.mu.Lock()
	uses := d.uses
	d.uses = map[use]time.Time{}
	d.mu.Unlock()
	var users, tenants []string
	var times []time.Time
	for u, at := range uses {
		users, tenants, times = append(users, u.userID), append(tenants, u.tenantID), append(times, at)
	}
	if len(users) == 0 {
		return nil
	}
	_, err := d.db.Exec(ctx, `insert into keep.tenant_use select * from unnest($1::text[], $2::text[], $3::timestamptz[])
		on conflict (user_id, tenant_id) do update set at = greatest(tenant_use.at, excluded.at)`, users, tenants, times)
	if err == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for u, at := range uses {
		if _, newer := d.uses[u]; !newer {
			d.uses[u] = at
		}
	}
	return unavailable(err)
}

// LastTenant returns the tenant that a person used last, empty where none is known.
func (d *Directory) LastTenant(ctx context.Context, userID string) (tenantID string, err error) {
	if err := d.flush(ctx); err != nil {
		return "", err
	}
	err = d.db.QueryRow(ctx, `select tenant_id from keep.tenant_use where user_id = $1 order by at desc limit 1`, userID).Scan(&tenantID)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return "", unavailable(err)
	}
	return tenantID, nil
}
