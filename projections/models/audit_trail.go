package models

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/mod/sumdb/tlog"

	"flagledger/events"
	"flagledger/events/proof"
	"flagledger/events/state"
	"flagledger/projections"
)

// trail adds entries. It caches the ends of tenants' trails and the names of things that it has read or written.
type trail struct {
	ends  map[string]*trailEnd    // by tenant
	names map[string]*streamNames // by stream
}

// trailEnd is the end of a tenant's trail.
type trailEnd struct {
	recorded time.Time          // of the last entry
	tree     proof.CompactRange // of all entries
	missing  []pgx.NamedArgs    // nodes of it that the table may lack
}

// streamNames holds the rows of audit_names of a stream.
type streamNames struct {
	tenantID *string // nil if there is none
	parts    map[string]string
}

// Beyond these sizes the caches are dropped and loaded again.
const (
	maxEnds  = 5_000
	maxNames = 20_000
)

func newTrail() *trail {
	return &trail{ends: map[string]*trailEnd{}, names: map[string]*streamNames{}}
}

// Load implements projections.Model.
func (t *trail) Load(ctx context.Context, use func(func(*pgx.Conn) error) error, list []events.Recorded) error {
	if len(t.ends) > maxEnds {
		clear(t.ends)
	}
	if len(t.names) > maxNames {
		clear(t.names)
	}
	var streams []string
	for _, e := range list {
		if t.names[e.Stream] != nil || !events.OfTenant(e.Stream) {
			continue
		}
		t.names[e.Stream] = &streamNames{parts: map[string]string{}}
		if e.Revision > 1 {
			streams = append(streams, e.Stream)
		}
	}
	if len(streams) > 0 {
		if err := use(func(conn *pgx.Conn) error { return t.loadNames(ctx, conn, streams) }); err != nil {
			return err
		}
	}
	var tenants []string
	for _, e := range list {
		if tenantID := t.tenantOf(e); tenantID != nil && t.ends[*tenantID] == nil {
			t.ends[*tenantID] = &trailEnd{}
			tenants = append(tenants, *tenantID)
		}
	}
	if len(tenants) == 0 {
		return nil
	}
	return use(func(conn *pgx.Conn) error { return t.loadEnds(ctx, conn, tenants) })
}

// tenantOf returns the tenant of an event, empty for the platform; nil if unknown.
func (t *trail) tenantOf(e events.Recorded) *string {
	if tenantID, known := events.TenantOf(e); known {
		return &tenantID
	}
	return t.names[e.Stream].tenantID
}

func (t *trail) loadNames(ctx context.Context, conn *pgx.Conn, streams []string) error {
	rows, err := conn.Query(ctx, `select stream, part, tenant_id, name from audit_names where stream = any($1)`, streams)
	if err != nil {
		return err
	}
	var stream, part, tenantID, name string
	_, err = pgx.ForEachRow(rows, []any{&stream, &part, &tenantID, &name}, func() error {
		names := t.names[stream]
		names.parts[part] = name
		if part == "" {
			names.tenantID = new(tenantID)
		}
		return nil
	})
	return err
}

func (t *trail) loadEnds(ctx context.Context, conn *pgx.Conn, tenants []string) error {
	rows, err := conn.Query(ctx, `select t.id, last.n + 1, last.recorded
		from unnest($1::text[]) t (id) cross join lateral (select n, recorded from audit where tenant_id = t.id
			order by n desc limit 1) last`, tenants)
	if err != nil {
		return err
	}
	var tenantID string
	var size int64
	var recorded time.Time
	sizes := map[string]int64{}
	_, err = pgx.ForEachRow(rows, []any{&tenantID, &size, &recorded}, func() error {
		t.ends[tenantID].recorded, sizes[tenantID] = recorded, size
		return nil
	})
	if err != nil {
		return err
	}
	for tenantID, size := range sizes {
		end := t.ends[tenantID]
		end.tree, err = loadTree(ctx, conn, tenantID, size, func(level int, index int64, hash tlog.Hash) {
			end.missing = append(end.missing,
				pgx.NamedArgs{"tenant_id": tenantID, "level": level, "index": index, "hash": hash[:]})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// auditTable lists the columns in the order of Apply.
var auditTable = &projections.Table{Name: "audit", Columns: []string{
	"tenant_id",
	"n",
	"commit",
	"prepare",
	"id",
	"recorded",
	"action",
	"resource_type",
	"resource_id",
	"resource_name",
	"environment",
	"changes",
	"actor_kind",
	"actor_id",
	"request_id",
	"reason",
	"version",
	"leaf",
}}

// Apply implements projections.Model. If an engine's clock runs backwards, an entry gets the time of the one before
// it.
func (t *trail) Apply(b *projections.Batch, e events.Recorded) error {
	entry, err := state.Describe(e)
	if err != nil {
		return err
	}
	t.addFormer(e, &entry)
	changes, err := entry.Changes.JSON()
	if err != nil {
		return err
	}
	leaf, err := events.LeafHash(e)
	if err != nil {
		return err
	}
	tenantID := t.tenantOf(e)
	if tenantID == nil {
		return fmt.Errorf("the tenant of %s is unknown", e.Stream)
	}
	end := t.ends[*tenantID]
	if end.recorded.Before(e.At) {
		end.recorded = e.At
	}
	name := t.noteName(b, e.Stream, *tenantID, entry)
	if entry.NameIsRole {
		name = nil
	}
	b.Insert(auditTable, *tenantID, end.tree.Size(), e.Position.Commit, e.Position.Prepare, [16]byte(e.ID), end.recorded,
		e.Name, entry.ResourceType, entry.ResourceID, name, entry.Environment, changes, e.Actor.Kind, e.Actor.ID, e.RequestID,
		e.Reason, e.Revision, leaf[:])
	if entry.Gone != "" && *entry.Part != "" {
		t.forget(b, e.Stream, *entry.Part)
	} else if fact, joined := e.Fact.(events.MemberJoined); joined {
		t.forget(b, e.Stream, state.MemberPart(fact.ID))
	}
	for _, node := range end.missing {
		b.Queue(addMissingNode, node)
	}
	end.missing = nil
	end.tree.AddFull(0, leaf, atStoredLevels(func(level int, index int64, hash tlog.Hash) {
		b.Insert(auditNodesTable, *tenantID, level, index, hash[:])
	}))
	return nil
}

var (
	addAuditName = projections.NewStatement("stream text, part text, tenant_id text, name text",
		`insert into audit_names (stream, part, tenant_id, name) select stream, part, tenant_id, name from given
		on conflict (stream, part) do update set name = excluded.name`)
	removeAuditName = projections.NewStatement("stream text, part text",
		`delete from audit_names n using given g where n.stream = g.stream and n.part = g.part`)
)

// addFormer adds what earlier facts said to an entry: the former name of a thing, or the role of a person who leaves.
func (t *trail) addFormer(e events.Recorded, entry *state.Description) {
	if entry.Part == nil {
		return
	}
	former, known := t.names[e.Stream].parts[*entry.Part]
	if !known {
		return
	}
	if entry.Gone != "" {
		entry.Changes.AddFormer(entry.Gone, former)
	}
	if _, joined := e.Fact.(events.MemberJoined); joined { // a pending member keeps the role
		entry.Name = nil
	}
}

// noteName stores the name of an entry's resource and returns it, or nil if it has none.
func (t *trail) noteName(b *projections.Batch, stream, tenantID string, entry state.Description) *string {
	if entry.Part == nil {
		return entry.Name
	}
	part, names := *entry.Part, t.names[stream]
	if entry.Name == nil {
		if name, known := names.parts[part]; known {
			return &name
		}
		return nil
	}
	names.parts[part] = *entry.Name
	if part == "" {
		names.tenantID = &tenantID
	}
	b.QueueLast(stream+"\x00"+part, addAuditName, pgx.NamedArgs{
		"stream": stream, "part": part, "tenant_id": tenantID, "name": *entry.Name,
	})
	return entry.Name
}

// forget drops the name of a removed part of a stream. Otherwise a tenant that creates and deletes OAuth clients all
// day would fill the memory.
func (t *trail) forget(b *projections.Batch, stream, part string) {
	delete(t.names[stream].parts, part)
	b.QueueLast(stream+"\x00"+part, removeAuditName, pgx.NamedArgs{"stream": stream, "part": part})
}
