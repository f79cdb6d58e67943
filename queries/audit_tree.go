package queries

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/mod/sumdb/tlog"

	"flagledger/events"
	"flagledger/migrations/database"
)

// AuditTree computes the Merkle tree (RFC 6962) over the entries of a tenant's trail, at its current or any smaller
// size.
type AuditTree struct {
	TenantID string
	Size     int64 // the number of entries
	db       reader
}

// ErrNotBuilt is the ErrUnavailable of an audit trail that has no tables yet.
var ErrNotBuilt = fmt.Errorf("%w: the audit trail is not built yet", ErrUnavailable)

// CurrentAuditTree returns the tree once the trail holds everything recorded so far. It returns ErrUnavailable also if
// that takes too long.
func (q *Queries) CurrentAuditTree(ctx context.Context, tenantID string) (*AuditTree, error) {
	if err := q.WaitUntilCurrent(ctx, time.Time{}, events.TenantFactPrefixes()...); err != nil {
		return nil, err
	}
	return q.AuditTree(ctx, tenantID)
}

// AuditTree returns the tree of a tenant's trail as far as it is projected. It returns ErrUnavailable while a stream
// of the trail is parked, and ErrNotBuilt before the trail exists.
func (q *Queries) AuditTree(ctx context.Context, tenantID string) (*AuditTree, error) {
	t := &AuditTree{TenantID: tenantID, db: q.db}
	var parked bool
	err := q.db.QueryRow(ctx, `select coalesce((select n + 1 from read.audit where tenant_id = $1 order by n desc
		limit 1), 0),
		exists (select from keep.parked where projection = 'audit' and not building)`, tenantID).
		Scan(&t.Size, &parked)
	if err == nil && parked {
		err = fmt.Errorf("%w: the trail leaves out facts that cannot be applied", ErrUnavailable)
	}
	if database.MissingTable(err) {
		err = ErrNotBuilt
	}
	return t, classify(err)
}

// EntryName identifies an entry for an operator.
type EntryName struct {
	N                                int64
	Action, ResourceType, ResourceID string
	Version                          int64
}

func (e EntryName) String() string {
	return fmt.Sprintf("%s %s, version %d, %s", e.ResourceType, e.ResourceID, e.Version, e.Action)
}

// Name returns the name of entry n, or ErrNotFound.
func (t *AuditTree) Name(ctx context.Context, n int64) (EntryName, error) {
	return t.name(ctx, `n = $2`, n)
}

// NameIn returns the name of the tenant's first entry between two positions of the log. It returns ErrNotFound if the
// tenant has none there, and ErrNotBuilt if the trails do not have an entry for each position.
func (t *AuditTree) NameIn(ctx context.Context, first, last uint64) (EntryName, error) {
	e, err := t.name(ctx, `commit between $2 and $3`, first, last)
	if !errors.Is(err, ErrNotFound) {
		return e, err
	}
	var known uint64
	if err := t.db.QueryRow(ctx, `select count(distinct commit) from read.audit where commit between $1 and $2`, first, last).
		Scan(&known); err != nil {
		return e, classify(err)
	}
	if known <= last-first {
		return e, ErrNotBuilt
	}
	return e, ErrNotFound
}

func (t *AuditTree) name(ctx context.Context, which string, args ...any) (e EntryName, err error) {
	rows, err := t.db.Query(
		ctx,
		`select n, action, resource_type, resource_id, version from read.audit where tenant_id = $1 and `+which+` order by n
			limit 1`,
		append([]any{t.TenantID}, args...)...)
	if err != nil {
		return e, classify(err)
	}
	e, err = pgx.CollectOneRow(rows, pgx.RowToStructByName[EntryName])
	return e, classify(err)
}

// Entry returns the number and the hash of an event's entry. It returns ErrNotFound if the event is not the tenant's.
func (t *AuditTree) Entry(ctx context.Context, eventID string) (n int64, leaf tlog.Hash, err error) {
	return t.entry(ctx, `id = $2::text::uuid`, eventID)
}

// FlagEntry works like Entry for the event that made a version of a flag.
func (t *AuditTree) FlagEntry(ctx context.Context, key string, version int64) (n int64, leaf tlog.Hash, err error) {
	return t.entry(ctx, `resource_id = $2 and resource_type = 'flag' and version = $3`, key, version)
}

func (t *AuditTree) entry(ctx context.Context, which string, args ...any) (n int64, leaf tlog.Hash, err error) {
	var hash []byte
	err = t.db.QueryRow(ctx, `select n, leaf from read.audit where tenant_id = $1 and `+which+` order by n limit 1`, append([]any{t.TenantID}, args...)...).
		Scan(&n, &hash)
	copy(leaf[:], hash)
	return n, leaf, classify(err)
}

// Root returns the root of the tree at a size.
func (t *AuditTree) Root(ctx context.Context, size int64) (tlog.Hash, error) {
	return tlog.TreeHash(size, t.reader(ctx))
}

// ProveEntry returns the inclusion proof of entry n in the tree of a size.
func (t *AuditTree) ProveEntry(ctx context.Context, size, n int64) ([]tlog.Hash, error) {
	return tlog.ProveRecord(size, n, t.reader(ctx))
}

// ProveGrowth returns the consistency proof from the tree of a smaller size.
func (t *AuditTree) ProveGrowth(ctx context.Context, size, from int64) ([]tlog.Hash, error) {
	return tlog.ProveTree(size, from, t.reader(ctx))
}

// Leaves yields the hashes of all entries in order.
func (t *AuditTree) Leaves(ctx context.Context) iter.Seq2[tlog.Hash, error] {
	return func(yield func(tlog.Hash, error) bool) {
		const piece = 5000
		for first := int64(0); first < t.Size; first += piece {
			list, err := t.stored(ctx, 0, first, min(piece, t.Size-first))
			if err != nil {
				yield(tlog.Hash{}, err)
				return
			}
			for _, leaf := range list {
				if !yield(leaf, nil) {
					return
				}
			}
		}
	}
}

func (t *AuditTree) reader(ctx context.Context) tlog.HashReader {
	return tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		list := make([]tlog.Hash, len(indexes))
		for i, index := range indexes {
			level, n := tlog.SplitStoredHashIndex(index)
			var err error
			if list[i], err = t.node(ctx, level, n); err != nil {
				return nil, err
			}
		}
		return list, nil
	})
}

// storedLevel returns the highest stored level that is not above a level.
func storedLevel(level int) int { return min(level/8*8, 16) }

// node returns a node of the tree.
func (t *AuditTree) node(ctx context.Context, level int, index int64) (tlog.Hash, error) {
	stored := storedLevel(level)
	first, count := index<<(level-stored), int64(1)<<(level-stored)
	list, err := t.stored(ctx, stored, first, count)
	if err != nil {
		return tlog.Hash{}, err
	}
	return rootOf(list), nil
}

// rootOf returns the root over neighbouring nodes of one level. It overwrites the list, whose length is a power of
// two.
func rootOf(list []tlog.Hash) tlog.Hash {
	for ; len(list) > 1; list = list[:len(list)/2] {
		for i := range len(list) / 2 {
			list[i] = tlog.NodeHash(list[2*i], list[2*i+1])
		}
	}
	return list[0]
}

// stored reads neighbouring nodes of a stored level. It computes missing ones from the level below.
func (t *AuditTree) stored(ctx context.Context, level int, first, count int64) ([]tlog.Hash, error) {
	query := `select index, hash from read.audit_nodes where tenant_id = $1 and level = $2 and index >= $3 and index < $4
		order by index`
	if level == 0 {
		query = `select n, leaf from read.audit where tenant_id = $1 and $2 = 0 and n >= $3 and n < $4 order by n`
	}
	rows, err := t.db.Query(ctx, query, t.TenantID, level, first, first+count)
	if err != nil {
		return nil, classify(err)
	}
	list := make([]tlog.Hash, 0, count)
	var index int64
	var hash []byte
	_, err = pgx.ForEachRow(rows, []any{&index, &hash}, func() error {
		if next := first + int64(len(list)); index != next || len(hash) != tlog.HashSize {
			return fmt.Errorf("entry %d of the audit trail or its hash is missing", next<<level)
		}
		list = append(list, tlog.Hash(hash))
		return nil
	})
	if err != nil {
		return nil, classify(err)
	}
	for n := int64(len(list)); n < count; n++ {
		if level == 0 {
			return nil, fmt.Errorf("entry %d of the audit trail is missing", first+n)
		}
		children, err := t.stored(ctx, level-8, (first+n)<<8, 1<<8)
		if err != nil {
			return nil, err
		}
		list = append(list, rootOf(children))
	}
	return list, nil
}
