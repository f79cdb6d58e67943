package usage

import (
	"context"
	"slices"

	"flagledger/migrations/database"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// pieceBytes is about how many bytes of values are in memory at once.
const pieceBytes = 128 << 10

// FlagPoints reads the points of a flag's metrics in pieces, so that a slow client holds few values in memory.
type FlagPoints struct {
	db            *pgxpool.Pool
	tenantID, key string
	life          int64
	left          []Point
}

// FlagPoints returns a reader of the metrics' points.
func (m *Meter) FlagPoints(tenantID, key string, of Metrics) *FlagPoints {
	return &FlagPoints{m.db, tenantID, key, of.life, of.Points}
}

// More reports whether there are more points.
func (f *FlagPoints) More() bool { return len(f.left) > 0 }

// Next reads the outcomes of the next points, at least one point and about pieceBytes of values. It returns
// database.ErrNotFound if the flag was deleted meanwhile.
func (f *FlagPoints) Next(ctx context.Context) ([]Point, error) {
	n, size, shown := 0, 0, map[string]*Outcome{}
	for _, point := range f.left {
		if n > 0 && size >= pieceBytes {
			break
		}
		n++
		for _, o := range point.Outcomes {
			if o.Outcome != nil && shown[o.id] == nil {
				shown[o.id] = new(*o.Outcome)
				size += o.size
			}
		}
	}
	if err := f.read(ctx, shown); err != nil {
		return nil, database.Classify(err)
	}
	points := slices.Clone(f.left[:n])
	for i := range points {
		points[i].Outcomes = slices.Clone(points[i].Outcomes)
		for j, o := range points[i].Outcomes {
			if o.Outcome != nil {
				points[i].Outcomes[j].Outcome = shown[o.id]
			}
		}
	}
	f.left = f.left[n:]
	return points, nil
}

// read adds the names and values of outcomes.
func (f *FlagPoints) read(ctx context.Context, shown map[string]*Outcome) error {
	if len(shown) == 0 {
		return nil
	}
	ids := make([]string, 0, len(shown))
	for id := range shown {
		ids = append(ids, id)
	}
	rows, err := f.db.Query(
		ctx,
		`select outcome, variation_name, value::text from keep.flag_outcomes where tenant_id = $1 and flag_key = $2
			and life = $3 and outcome = any($4)`,
		f.tenantID,
		f.key,
		f.life,
		ids,
	)
	if err != nil {
		return err
	}
	var id string
	var name *string
	var value []byte
	tag, err := pgx.ForEachRow(rows, []any{&id, &name, &value}, func() error {
		shown[id].VariationName, shown[id].Value = name, slices.Clone(value)
		return nil
	})
	if err == nil && int(tag.RowsAffected()) < len(ids) {
		err = database.ErrNotFound
	}
	if err != nil {
		return err
	}
	return f.nameVariations(ctx, shown)
}

// nameVariations sets the current name of each variation, or the last name of a removed one.
func (f *FlagPoints) nameVariations(ctx context.Context, outcomes map[string]*Outcome) error {
	names, err := namesOf(ctx, f.db, `select id, name from read.flag_variations where tenant_id = $1 and key = $2`,
		f.tenantID, f.key)
	if err != nil {
		return err
	}
	var removed []string
	for _, o := range outcomes {
		if o.VariationID != nil && names[*o.VariationID] == nil {
			removed = append(removed, *o.VariationID)
		}
	}
	var last map[string]*string
	if len(removed) > 0 { // one query for all: a lookup for each would be quadratic
		last, err = namesOf(ctx, f.db, `select distinct on (v.id) v.id, c.value -> 'from' ->> 'name' from read.audit a
			cross join lateral json_each(a.changes) c join unnest($3::text[]) v (id) on c.key = 'variations.' || v.id
			where a.tenant_id = $1 and a.resource_id = $2 and a.resource_type = 'flag' and a.action = 'flag.variation_removed'
				order by v.id, a.n desc`, f.tenantID, f.key, removed)
	}
	for _, o := range outcomes {
		if o.VariationID == nil {
			continue
		}
		for _, known := range []map[string]*string{last, names} {
			if name := known[*o.VariationID]; name != nil {
				o.VariationName = name
			}
		}
	}
	return err
}
