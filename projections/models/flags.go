package models

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
	"flagledger/events/state"
	"flagledger/projections"
)

var flags = projections.Projection{
	Name:    "flags",
	Version: 13, // offServes
	Tables: slices.Concat([]string{"flags", "flag_variations", "flag_environments", "flag_rules", "flag_fallthroughs"},
		flagSpanTables, []string{"flag_states"}),
	Schema: `
create table flags (
    tenant_id     text        not null,
    key           text collate "C" not null, -- lists are in its order
    default_value json        not null,
    salt          text        not null,
    version       bigint      not null,
    created_version bigint    not null, -- with which this life of the key began
    created_at    timestamptz not null,
    updated_at    timestamptz not null,
    prerequisites json        not null, -- of events/state, by environment id, as is the next
    required_changed json     not null,
    ` + listedSchema + `
    primary key (tenant_id, key)
);
create table flag_variations (
    tenant_id   text   not null,
    key         text collate "C" not null,
    id          text   not null,
    added       bigint not null, -- 0; nodes of the previous release order variations by it first
    ordinal     int    not null, -- the order of variations
    name        text   not null,
    value       json   not null,
    description text   not null,
    weight      bigint not null, -- thousandths
    primary key (tenant_id, key, id)
);
create table flag_environments (
    tenant_id      text not null,
    key            text collate "C" not null,
    environment_id text not null, -- the flag is enabled in it
    primary key (tenant_id, key, environment_id)
);
create table flag_rules (
    tenant_id      text not null,
    key            text collate "C" not null,
    environment_id text not null,
    id             text not null,
    position       int  not null, -- from 1
    rule           json not null, -- as facts hold it
    primary key (tenant_id, key, environment_id, id)
);
create table flag_fallthroughs (
    tenant_id      text not null,
    key            text collate "C" not null,
    environment_id text not null,
    serve          json not null, -- as facts hold it
    primary key (tenant_id, key, environment_id)
);` + flagSpans + flagStatesSchema,
	Indexes: `
create index if not exists flags_project on flags (project_id) where project_id is not null; -- not after tenant_id: no plan shall prefer it to the key` +
		flagSpansIndexes + flagStatesIndexes,
	FactPrefixes: []string{"flag."},
	New:          func() projections.Model { return newFlagModel() },
}

// Apply implements projections.Model.
func (m *flagModel) Apply(b *projections.Batch, e events.Recorded) error {
	tenant, key := events.ParseFlagStream(e.Stream)
	if _, ok := e.Fact.(events.FlagFact); !ok || key == "" {
		return fmt.Errorf("%s in stream %s is no fact of a flag", e.Name, e.Stream)
	}
	e.At = e.At.Truncate(time.Microsecond) // as rows have it
	before := m.flags[e.Stream]
	after := before.Clone()
	after.Apply(e)
	if !after.Exists {
		after = state.Flag{Version: after.Version}
	}
	if after.TenantID, after.Key = tenant, key; len(after.Tags) == 0 {
		after.Tags = nil
	}
	c := flagChange{
		Batch: b, rewritten: m.rewritten, stream: e.Stream, tenant: tenant, key: key, at: e, before: before, after: &after,
	}
	if err := c.queue(); err != nil {
		return err
	}
	m.keep(e.Stream, &after)
	return nil
}

const ownNames = "default_value, salt, version, created_version, created_at, updated_at, prerequisites, " +
	"required_changed"

// fromExcluded returns the assignments of an upsert.
func fromExcluded(names string) string {
	var set []string
	for _, name := range strings.Split(names, ", ") {
		set = append(set, name+" = excluded."+name)
	}
	return strings.Join(set, ", ")
}

// The columns that lists of flags show, and filter by, at any time: the tables flags and flag_spans have them.
const (
	listedNames = "id, name, type, description, tags, project_id, permanent, client_side, owner, links, off_serves, status"
	listedTypes = "id text, name text, type text, description text, tags text[], project_id text, permanent boolean, " +
		"client_side boolean, owner text, links json, off_serves text, status text"
	listedSchema = `id            text        not null,
    name          text        not null,
    type          text        not null,
    description   text        not null,
    tags          text[]      not null,
    project_id    text,
    permanent     boolean     not null,
    client_side   boolean     not null,
    owner         text, -- also of a person who is no member
    links         json        not null, -- as facts hold them
    off_serves    text        not null, -- as facts hold it
    status        text        not null,`
)

// listed returns the listed columns of a flag.
func listed(f *state.Flag) pgx.NamedArgs {
	return pgx.NamedArgs{
		"id": f.ID, "name": f.Name, "type": f.Type, "description": f.Description, "tags": orEmpty(f.Tags),
		"project_id": textOrNull(f.ProjectID), "permanent": f.Permanent, "client_side": f.ClientSide,
		"owner": textOrNull(f.Owner), "links": linksJSON(f.Links), "off_serves": f.OffServes,
		"status": f.Status,
	}
}

func linksJSON(list []events.Link) string {
	if len(list) == 0 { // as for most flags
		return "[]"
	}
	text, err := events.Marshal(list)
	if err != nil {
		panic(err) // texts of a fact that was read can be written
	}
	return string(text)
}

// byEnvironmentJSON returns a part of a state.
func byEnvironmentJSON[T any](part map[string]T) string {
	if len(part) == 0 { // as for most flags
		return "{}"
	}
	text, err := events.Marshal(part)
	if err != nil {
		panic(err) // what a fact that was read has can be written
	}
	return string(text)
}

// samePrerequisites reports whether two states require the same.
func samePrerequisites(a, b *state.Flag) bool {
	return reflect.DeepEqual(a.Prerequisites, b.Prerequisites) && maps.Equal(a.RequiredChanged, b.RequiredChanged)
}

// flagColumns is a row of the table flags.
type flagColumns struct {
	TenantID       string            `json:"tenant_id"`
	Key            string            `json:"key"`
	ID             string            `json:"id"`
	Name           string            `json:"name"`
	Type           events.FlagType   `json:"type"`
	DefaultValue   json.RawMessage   `json:"default_value"`
	Description    string            `json:"description"`
	Tags           []string          `json:"tags"`
	ProjectID      string            `json:"project_id"`
	Permanent      bool              `json:"permanent"`
	ClientSide     bool              `json:"client_side"`
	Owner          string            `json:"owner"`
	Links          []events.Link     `json:"links"`
	OffServes      events.OffServes  `json:"off_serves"`
	Status         events.FlagStatus `json:"status"`
	Salt           string            `json:"salt"`
	Version        events.Revision   `json:"version"`
	CreatedVersion events.Revision   `json:"created_version"`
	CreatedAt      time.Time         `json:"created_at"`
	UpdatedAt      time.Time         `json:"updated_at"`

	Prerequisites   map[string][]state.Prerequisite `json:"prerequisites"`
	RequiredChanged map[string]time.Time            `json:"required_changed"`
}

// state returns the flag without what other tables have.
func (c flagColumns) state() *state.Flag {
	f := &state.Flag{
		FlagCreated: events.FlagCreated{
			TenantID: c.TenantID, Key: c.Key, ID: c.ID, Name: c.Name, Type: c.Type, DefaultValue: c.DefaultValue,
			Description: c.Description, ProjectID: c.ProjectID, Permanent: c.Permanent, ClientSide: c.ClientSide,
			Owner: c.Owner, OffServes: c.OffServes, Salt: c.Salt,
		},
		Exists: true, Status: c.Status, Version: c.Version, CreatedVersion: c.CreatedVersion,
		CreatedAt: c.CreatedAt.UTC(), UpdatedAt: c.UpdatedAt.UTC(),
	}
	if len(c.Tags) > 0 {
		f.Tags = c.Tags
	}
	if len(c.Links) > 0 {
		f.Links = c.Links
	}
	if len(c.Prerequisites) > 0 {
		f.Prerequisites = c.Prerequisites
	}
	if len(c.RequiredChanged) > 0 {
		f.RequiredChanged = c.RequiredChanged
	}
	return f
}

// flagChange queues the statements that turn the rows of one state of a flag into the rows of the next.
type flagChange struct {
	*projections.Batch
	rewritten           map[string]bool // flags whose row the batch writes whole
	stream, tenant, key string
	at                  events.Recorded
	before, after       *state.Flag
}

func (c flagChange) queue() error {
	c.Insert(flagVersionsTable, c.tenant, c.key, c.at.Revision, c.at.At)
	c.spans()
	switch {
	case c.after.Exists && (c.rewritten[c.stream] || !sameFields(c.before, c.after) ||
		!samePrerequisites(c.before, c.after)):
		c.rewritten[c.stream] = true
		row := listed(c.after)
		row["default_value"], row["salt"], row["version"] = c.after.DefaultValue, c.after.Salt, c.after.Version
		row["created_version"], row["created_at"] = c.after.CreatedVersion, c.after.CreatedAt
		row["updated_at"] = c.after.UpdatedAt
		row["prerequisites"] = byEnvironmentJSON(c.after.Prerequisites)
		row["required_changed"] = byEnvironmentJSON(c.after.RequiredChanged)
		c.set("flag", upsertFlag, row)
	case c.after.Exists: // which is most changes, and cheap however large the default value is
		c.set("flag", touchFlag, pgx.NamedArgs{"version": c.after.Version, "updated_at": c.after.UpdatedAt})
	case c.before.Exists:
		c.set("flag", deleteFlag, pgx.NamedArgs{})
	}
	c.variations()
	if err := c.environments(); err != nil {
		return err
	}
	if c.at.Revision%state.StoredStateInterval != 0 {
		return nil
	}
	kept := any(c.after)
	if !c.after.Exists {
		kept = struct {
			Version events.Revision `json:"version"`
		}{c.at.Revision}
	}
	text, err := events.Marshal(kept)
	if err != nil {
		return err
	}
	c.Insert(flagStatesTable, c.tenant, c.key, c.at.Revision, c.at.At, text)
	return nil
}

// set queues a statement about a row of the flag. Of several about the same row, named by its table and ids, the last
// one takes effect.
func (c flagChange) set(row string, s *projections.Statement, args pgx.NamedArgs) {
	args["tenant_id"], args["key"] = c.tenant, c.key
	c.QueueLast(c.stream+"\x00"+row, s, args)
}

func (c flagChange) variations() {
	before := map[string]int{}
	for i, v := range c.before.Variations {
		before[v.ID] = i
	}
	for i, v := range c.after.Variations {
		was, had := before[v.ID]
		delete(before, v.ID)
		if had && was == i && sameVariation(c.before.Variations[was], v) {
			continue
		}
		c.set("variation "+v.ID, upsertVariation, pgx.NamedArgs{
			"id": v.ID, "ordinal": i, "name": v.Name, "value": v.Value, "description": v.Description,
			"weight": int64(v.Weight),
		})
	}
	for id := range before {
		c.set("variation "+id, deleteVariation, pgx.NamedArgs{"id": id})
	}
}

func sameVariation(a, b events.Variation) bool {
	return a.Name == b.Name && a.Description == b.Description && a.Weight == b.Weight && string(a.Value) == string(b.Value)
}

// environments queues the rows of rules and fallthroughs.
func (c flagChange) environments() error {
	for id, list := range c.after.Rules {
		if err := c.rules(id, c.before.Rules[id], list); err != nil {
			return err
		}
	}
	for id, list := range c.before.Rules {
		if c.after.Rules[id] == nil {
			if err := c.rules(id, list, nil); err != nil {
				return err
			}
		}
	}
	for id, serve := range c.after.Fallthrough {
		was, had := c.before.Fallthrough[id]
		if had && events.StoredEqual(was, serve) {
			continue
		}
		text, err := events.Marshal(serve)
		if err != nil {
			return err
		}
		c.set("fallthrough "+id, upsertFallthrough, pgx.NamedArgs{"environment_id": id, "serve": text})
	}
	for id := range c.before.Fallthrough {
		if _, has := c.after.Fallthrough[id]; !has {
			c.set("fallthrough "+id, deleteFallthrough, pgx.NamedArgs{"environment_id": id})
		}
	}
	return nil
}

func (c flagChange) rules(environmentID string, before, after []events.Rule) error {
	if len(before) == len(after) && len(after) > 0 && &before[0] == &after[0] {
		return nil // as they were
	}
	was := map[string]int{}
	for i, r := range before {
		was[r.ID] = i
	}
	for i, r := range after {
		old, had := was[r.ID]
		delete(was, r.ID)
		if had && old == i && events.StoredEqual(before[old], r) {
			continue
		}
		text, err := events.Marshal(r)
		if err != nil {
			return err
		}
		c.set("rule "+environmentID+" "+r.ID, upsertRule,
			pgx.NamedArgs{"environment_id": environmentID, "id": r.ID, "position": i + 1, "rule": text})
	}
	for id := range was {
		c.set("rule "+environmentID+" "+id, deleteRule, pgx.NamedArgs{"environment_id": environmentID, "id": id})
	}
	return nil
}

// spans queues the rows of what lists held at any time.
func (c flagChange) spans() {
	args := func() pgx.NamedArgs {
		return pgx.NamedArgs{"tenant_id": c.tenant, "key": c.key, "version": c.at.Revision, "recorded": c.at.At}
	}
	for _, id := range c.before.Enabled {
		if !c.after.Enabled.Has(id) {
			disable := args()
			delete(disable, "version")
			disable["environment_id"] = id
			c.Queue(disableFlag, disable)
		}
	}
	switch {
	case !c.after.Exists:
		end := args()
		delete(end, "version")
		c.Queue(endFlagSpan, end)
	case c.after.Exists && !sameFields(c.before, c.after):
		begin := listed(c.after)
		begin["version"], begin["created_version"] = c.at.Revision, c.after.CreatedVersion
		begin["created_at"] = c.after.CreatedAt
		begin["default_value"] = nil
		if c.before.CreatedVersion != c.after.CreatedVersion || !bytes.Equal(c.before.DefaultValue, c.after.DefaultValue) {
			begin["default_value"] = c.after.DefaultValue
		}
		begin["tenant_id"], begin["key"], begin["recorded"] = c.tenant, c.key, c.at.At
		c.Queue(beginFlagSpan, begin)
	}
	for _, id := range c.after.Enabled {
		if !c.before.Enabled.Has(id) {
			enable := args()
			enable["environment_id"] = id
			c.Queue(enableFlag, enable)
		}
	}
}

// sameFields reports whether two states have the same default value, and lists show the same of them but for the
// version, switches and the time of the last change.
func sameFields(a, b *state.Flag) bool {
	return a.CreatedVersion == b.CreatedVersion && bytes.Equal(a.DefaultValue, b.DefaultValue) &&
		reflect.DeepEqual(listed(a), listed(b))
}

var (
	upsertFlag = projections.NewStatement(
		"tenant_id text, key text, default_value json, salt text, version bigint, created_version bigint, "+
			"created_at timestamptz, updated_at timestamptz, prerequisites json, "+
			"required_changed json, "+listedTypes,
		`insert into flags (tenant_id, key, `+ownNames+`, `+listedNames+`)
		select tenant_id, key, `+ownNames+`, `+listedNames+` from given
		on conflict (tenant_id, key) do update set `+fromExcluded(ownNames+", "+listedNames),
	)
	touchFlag = projections.NewStatement("tenant_id text, key text, version bigint, updated_at timestamptz",
		`update flags f set version = g.version, updated_at = g.updated_at from given g
			where f.tenant_id = g.tenant_id and f.key = g.key`)
	deleteFlag = projections.NewStatement("tenant_id text, key text",
		`delete from flags t using given g where t.tenant_id = g.tenant_id and t.key = g.key`)
	upsertVariation = projections.NewStatement(
		"tenant_id text, key text, id text, ordinal int, name text, value json, description text, weight bigint",
		`insert into flag_variations (tenant_id, key, id, added, ordinal, name, value, description, weight)
		select tenant_id, key, id, 0, ordinal, name, value, description, weight from given
		on conflict (tenant_id, key, id) do update set ordinal = excluded.ordinal, name = excluded.name,
			value = excluded.value, description = excluded.description, weight = excluded.weight`,
	)
	deleteVariation = projections.NewStatement("tenant_id text, key text, id text",
		`delete from flag_variations v using given g where v.tenant_id = g.tenant_id and v.key = g.key and v.id = g.id`)
	upsertRule = projections.NewStatement(
		"tenant_id text, key text, environment_id text, id text, position int, rule json",
		`insert into flag_rules (tenant_id, key, environment_id, id, position, rule)
			select tenant_id, key, environment_id, id, position, rule from given
		on conflict (tenant_id, key, environment_id, id) do update set position = excluded.position,
			rule = excluded.rule`,
	)
	deleteRule = projections.NewStatement("tenant_id text, key text, environment_id text, id text",
		`delete from flag_rules r using given g where r.tenant_id = g.tenant_id and r.key = g.key
			and r.environment_id = g.environment_id and r.id = g.id`)
	upsertFallthrough = projections.NewStatement("tenant_id text, key text, environment_id text, serve json",
		`insert into flag_fallthroughs (tenant_id, key, environment_id, serve)
			select tenant_id, key, environment_id, serve from given
		on conflict (tenant_id, key, environment_id) do update set serve = excluded.serve`)
	deleteFallthrough = projections.NewStatement("tenant_id text, key text, environment_id text",
		`delete from flag_fallthroughs t using given g where t.tenant_id = g.tenant_id and t.key = g.key
			and t.environment_id = g.environment_id`)
)

// to returns the new value of a field that changed, nil for one that did not.
func to[T any](c *events.Change[T]) *T {
	if c == nil {
		return nil
	}
	return &c.To
}

// textOrNull returns a text, nil if it is empty.
func textOrNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
