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

// auditNodesSchema has the nodes of a tenant's Merkle tree (RFC 6962) at two of its levels: the hashes of 256 leaves,
// and of 256 such nodes. Whatever node is asked for, few others must be read.
const auditNodesSchema = `
create table audit_nodes (
    tenant_id text collate "C" not null,
    level     int              not null, -- 8 or 16: it is the root of two to the power of level leaves
    index     bigint           not null, -- from the left, 0, 1, 2 and so on
    hash      bytea            not null,
    primary key (tenant_id, level, index)
);`

// addMissingNode is for nodes of which some may be there.
var addMissingNode = projections.NewStatement(
	"tenant_id text, level int, index bigint, hash bytea",
	`insert into audit_nodes (tenant_id, level, index, hash) select tenant_id, level, index, hash from given
		on conflict do nothing`,
)

var auditNodesTable = &projections.Table{Name: "audit_nodes", Columns: []string{"tenant_id", "level", "index", "hash"}}

// atStoredLevels passes on the full trees that come about at the levels whose nodes audit_nodes has.
func atStoredLevels(completed func(level int, index int64, hash tlog.Hash)) func(int, int64, tlog.Hash) {
	return func(level int, index int64, hash tlog.Hash) {
		if level == 8 || level == 16 {
			completed(level, index, hash)
		}
	}
}

// loadTree makes the tree of a tenant's first entries, whose number is size. It reads the fewest hashes that can be
// stored; where nodes are missing it reads all leaves, and tells all nodes of the levels that are stored.
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
		err = fmt.Errorf("the audit trail of tenant %s has %d entries and not %d", tenantID, t.Size(), size)
	}
	return t, err
}

// readTree makes a tree of the levels and hashes of subtrees.
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
			return errors.New("a hash of the audit trail has another length")
		}
		t.AddFull(level, tlog.Hash(hash), atStoredLevels(completed))
		return nil
	})
	return t, err
}
