package models

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"golang.org/x/mod/sumdb/tlog"

	"flagledger/events/proof"
	"flagledger/projections"
)

// auditNodesSchema stores two levels of a tenant's Merkle tree (RFC 6962): hashes over 256 leaves, and over 256 such
// nodes. Any other node is computed from few of them.
const auditNodesSchema = `
create table audit_nodes (
    tenant_id text collate "C" not null,
    level     int              not null, -- 8 or 16: it is the root of two to the power of level leaves
    index     bigint           not null, -- from the left, 0, 1, 2 and so on
    hash      bytea            not null,
    primary key (tenant_id, level, index)
);`

// addMissingNode adds nodes that may already exist.
var addMissingNode = projections.NewStatement(
	"tenant_id text, level int, index bigint, hash bytea",
	`insert into audit_nodes (tenant_id, level, index, hash) select tenant_id, level, index, hash from given
		on conflict do nothing`,
)

var auditNodesTable = &projections.Table{Name: "audit_nodes", Columns: []string{"tenant_id", "level", "index", "hash"}}

// atStoredLevels passes on completed subtrees of the levels in audit_nodes.
func atStoredLevels(completed func(level int, index int64, hash tlog.Hash)) func(int, int64, tlog.Hash) {
	return func(level int, index int64, hash tlog.Hash) {
		if level == 8 || level == 16 {
			completed(level, index, hash)
		}
	}
}

// loadTree loads the tree of a tenant's first size entries from as few hashes as possible. If nodes are missing, it
// reads all leaves and passes the nodes of all stored levels to completed.
func loadTree(
	ctx context.Context, conn *pgx.Conn, tenantID string, size int64, missing func(level int, index int64, hash tlog.Hash),
) (proof.CompactRange, error) {
	t, err := readTree(ctx, conn, func(int, int64, tlog.Hash) {}, `
		select level, hash from (
			select level, index, hash from audit_nodes where tenant_id = $1 and level = 16
			union all
			select level, index, hash from audit_nodes where tenant_id = $1 and level = 8 and index >= $2
			union all
			select 0, n, leaf from audit where tenant_id = $1 and n >= $3
		) stored order by level desc, index`, tenantID, size>>16<<8, size>>8<<8)
	if err == nil && t.Size() != size {
		t, err = readTree(ctx, conn, missing, `select 0, leaf from audit where tenant_id = $1 order by n`, tenantID)
	}
	if err == nil && t.Size() != size {
		err = fmt.Errorf("the audit trail of tenant %s has %d entries, want %d", tenantID, t.Size(), size)
	}
	return t, err
}

// readTree builds a tree from rows of levels and hashes of subtrees.
func readTree(
	ctx context.Context, conn *pgx.Conn, completed func(level int, index int64, hash tlog.Hash), query string, args ...any,
) (t proof.CompactRange, err error) {
	rows, err := conn.Query(ctx, query, args...)
	if err != nil {
		return t, err
	}
	var level int
	var hash []byte
	_, err = pgx.ForEachRow(rows, []any{&level, &hash}, func() error {
		if len(hash) != tlog.HashSize {
			return errors.New("a hash of the audit trail has the wrong length")
		}
		t.AddFull(level, tlog.Hash(hash), atStoredLevels(completed))
		return nil
	})
	return t, err
}
