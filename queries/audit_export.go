package queries

import (
	"context"
	"fmt"
)

// AuditExport reads a tenant's trail as it stood when the export began, oldest first, in pieces. It holds one piece in
// memory, and no connection between pieces.
type AuditExport struct {
	q          *Queries
	conditions string
	args       []any
	piece      *List[AuditEntry] // of the rows being read
	after, end int64             // the numbers that are left, both exclusive
}

// ExportAudit begins to read a tenant's trail after an entry number; -1 reads all of it.
func (q *Queries) ExportAudit(
	ctx context.Context, tenantID string, filter AuditFilter, after int64,
) (*AuditExport, error) {
	first, end, err := q.auditRange(ctx, tenantID, filter)
	if err != nil {
		return nil, err
	}
	conditions, args := where([]any{tenantID}, filter.conditions()...)
	return &AuditExport{
		q:          q,
		conditions: "a.tenant_id = $1 and " + conditions,
		args:       args,
		after:      min(max(after, first-1), end-1),
		end:        end,
	}, nil
}

// More reports whether there may be another piece. It may be empty.
func (e *AuditExport) More() bool { return e.piece != nil && e.piece.More() || e.after+1 < e.end }

// Next reads the next piece, which is empty at the end.
func (e *AuditExport) Next(ctx context.Context) ([]AuditEntry, error) {
	if e.piece != nil && e.piece.More() {
		return e.piece.Next(ctx)
	}
	if !e.More() {
		return nil, nil
	}
	last := min(e.after+maxExamined, e.end-1)
	n := len(e.args)
	from := fmt.Sprintf(`from read.audit a%s where %s and a.n > $%d and a.n <= $%d`, actorJoins, e.conditions, n+1, n+2)
	e.piece = newList[AuditEntry](e.q.db, auditColumns, from, "a.n", -1, append(e.args[:n:n], e.after, last))
	e.piece.batch = maxBatch
	rows, err := e.piece.read(ctx, 0)
	e.after = last
	return rows, err
}
