package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"flagledger/events"
)

// tenantThen is a tenant as it was. It has a few fields of each flag and no state.Flag, whose values and rules take as
// much as the tenant's facts.
type tenantThen struct {
	ID           string         `json:"id"`
	Name         string         `json:"name"`
	Sandbox      bool           `json:"sandbox"`
	Plan         events.Plan    `json:"plan"`
	Status       string         `json:"subscription"`
	Environments []string       `json:"environments"`
	Members      []memberThen   `json:"members"`
	Clients      []clientThen   `json:"oauthClients"`
	Projects     []*projectThen `json:"projects"`
	Flags        []flagThen     `json:"flags"`
}

type memberThen struct {
	ID      string      `json:"userId"`
	Name    string      `json:"name"` // today's
	Role    events.Role `json:"role"`
	Pending bool        `json:"pending"`
}

type clientThen struct {
	ID     string         `json:"clientId"`
	Name   string         `json:"name"`
	Scopes []events.Scope `json:"scopes"`
}

type flagThen struct {
	Key     string            `json:"key"`
	Name    string            `json:"name"`
	Type    events.FlagType   `json:"type"`
	Status  events.FlagStatus `json:"status"`
	Enabled []string          `json:"enabledIn"`
	in      map[string]bool   // ids of environments
}

// tenantFold adds up a tenant.
type tenantFold struct {
	tenant       *tenantThen // nil before its creation and once it is deleted
	environments []events.EnvironmentRef
	members      map[string]memberThen
	clients      map[string]clientThen
	projects     map[string]*projectThen // by stream, as are flags
	flags        map[string]*flagThen
}

// apply takes in a fact, and reports whether it knows it.
func (t *tenantFold) apply(e events.Recorded) bool {
	switch fact := e.Fact.(type) {
	case events.TenantFact:
		t.applyTenant(fact)
	case events.ProjectFact:
		if p := t.projects[e.Stream].after(e.Stream, fact); p != nil {
			t.projects[e.Stream] = p
		} else {
			delete(t.projects, e.Stream)
		}
	case events.FlagFact:
		t.applyFlag(e.Stream, fact)
	default:
		return false
	}
	return true
}

func (t *tenantFold) applyTenant(fact events.TenantFact) {
	t.environments = environmentsAfter(t.environments, fact)
	switch fact := fact.(type) {
	case events.TenantCreated:
		t.tenant = &tenantThen{
			ID:      fact.ID,
			Name:    fact.Name,
			Sandbox: fact.Sandbox,
			Plan:    fact.Plan,
			Status:  string(fact.FirstSubscription().Status),
		}
	case events.TenantUpdated:
		if t.tenant != nil {
			fact.Name.Apply(&t.tenant.Name)
		}
	case events.TenantDeleted:
		t.tenant = nil
	case events.SubscriptionChanged:
		if t.tenant != nil {
			t.tenant.Plan, t.tenant.Status = fact.To.Plan, string(fact.To.Status)
		}
	case events.EnvironmentAdded, events.EnvironmentDeleted, events.OAuthSecretRotated:
	case events.MemberAdded:
		t.members[fact.UserID] = memberThen{ID: fact.UserID, Role: fact.Role}
	case events.MemberInvited:
		t.members[fact.ID] = memberThen{ID: fact.ID, Role: fact.Role, Pending: true}
	case events.MemberJoined:
		delete(t.members, fact.ID)
		if _, member := t.members[fact.UserID]; !member {
			t.members[fact.UserID] = memberThen{ID: fact.UserID, Role: fact.Role}
		}
	case events.MemberRoleChanged:
		m := t.members[fact.UserID]
		m.ID, m.Role = fact.UserID, fact.To
		t.members[fact.UserID] = m
	case events.MemberRemoved:
		delete(t.members, fact.UserID)
	case events.OAuthClientCreated:
		t.clients[fact.ClientID] = clientThen{fact.ClientID, fact.Name, fact.Scopes}
	case events.OAuthClientDeleted:
		delete(t.clients, fact.ClientID)
	}
}

func (t *tenantFold) applyFlag(stream string, fact events.FlagFact) {
	f := t.flags[stream]
	if f == nil {
		_, key := events.ParseFlagStream(stream)
		f = &flagThen{Key: key, in: map[string]bool{}}
	}
	switch fact := fact.(type) {
	case events.FlagCreated:
		*f = flagThen{Key: fact.Key, Name: fact.Name, Type: fact.Type, Status: events.ActiveFlag, in: map[string]bool{}}
	case events.FlagUpdated:
		fact.Name.Apply(&f.Name)
	case events.FlagStatusChanged:
		f.Status = fact.To
	case events.FlagEnabled:
		f.in[fact.Environment.ID] = true
	case events.FlagDisabled:
		delete(f.in, fact.Environment.ID)
	case events.FlagDeleted:
		delete(t.flags, stream)
		return
	case events.VariationAdded,
		events.VariationUpdated,
		events.VariationRemoved,
		events.RulesChanged,
		events.FallthroughChanged,
		events.FlagReverted:
	}
	t.flags[stream] = f
}

// printTenant prints the tenant as it was at a time.
func (r *replay) printTenant(ctx context.Context, at time.Time) error {
	fold := tenantFold{
		members:  map[string]memberThen{},
		clients:  map[string]clientThen{},
		projects: map[string]*projectThen{},
		flags:    map[string]*flagThen{},
	}
	var omitted omittedFacts
	facts := 0
reading:
	for page, err := range r.tenantFacts(ctx) {
		if err != nil {
			return err
		}
		for _, e := range page {
			if e.At.After(at) {
				break reading
			}
			if facts++; !fold.apply(e) {
				omitted.note(e)
			}
		}
	}
	r.warn(omitted)
	if facts == 0 {
		return fmt.Errorf("%w by then", r.notFound())
	}
	if fold.tenant != nil {
		r.fill(ctx, &fold)
	}
	if r.form.json {
		return r.putJSON(struct {
			At     string      `json:"at"`
			Facts  int         `json:"facts"`
			Tenant *tenantThen `json:"tenant"`
		}{at.UTC().Format(time.RFC3339Nano), facts, fold.tenant})
	}
	words := []span{{bold, "Tenant " + r.Tenant}}
	if fold.tenant == nil {
		words = append(words, span{red, "  deleted"})
	}
	r.screen.line(
		append(words, span{dim, fmt.Sprintf("  at %s, after %d facts", at.UTC().Format(time.RFC3339Nano), facts)})...)
	if fold.tenant != nil {
		r.tenantFields(fold.tenant)
	}
	return nil
}

// fill makes lists of what was added up.
func (r *replay) fill(ctx context.Context, fold *tenantFold) {
	t := fold.tenant
	t.Environments, t.Clients = []string{}, sorted(fold.clients, func(c clientThen) string { return c.Name + " " + c.ID })
	for _, e := range fold.environments {
		t.Environments = append(t.Environments, e.Name)
	}
	names := r.findNames(ctx, slices.Collect(maps.Keys(fold.members)))
	for id, m := range fold.members {
		m.Name = memberName(id, names)
		fold.members[id] = m
	}
	t.Members = sorted(fold.members, func(m memberThen) string { return m.Name + " " + m.ID })
	t.Projects = sorted(fold.projects, func(p *projectThen) string { return p.Name + " " + p.ID })
	t.Flags = make([]flagThen, 0, len(fold.flags))
	for _, f := range fold.flags {
		f.Enabled = []string{}
		for _, e := range fold.environments {
			if f.in[e.ID] {
				f.Enabled = append(f.Enabled, e.Name)
			}
		}
		t.Flags = append(t.Flags, *f)
	}
	slices.SortFunc(t.Flags, func(a, b flagThen) int { return cmp.Compare(a.Key, b.Key) })
}

func sorted[T any](all map[string]T, by func(T) string) []T {
	list := make([]T, 0, len(all))
	for _, one := range all {
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b T) int { return cmp.Compare(by(a), by(b)) })
	return list
}

func (r *replay) tenantFields(t *tenantThen) {
	r.screen.line()
	r.field("name", t.Name)
	r.field("plan", string(t.Plan))
	if t.Status != string(events.NoSubscription) {
		r.field("subscription", t.Status)
	}
	if t.Sandbox {
		r.field("sandbox", "yes")
	}
	r.field("environments", strings.Join(t.Environments, ", "))
	var members, clients, projects, flags [][]span
	for _, m := range t.Members {
		pending := ""
		if m.Pending {
			pending = "invited"
		}
		members = append(members, []span{{cyan, m.Name}, {plain, string(m.Role)}, {dim, pending}})
	}
	for _, c := range t.Clients {
		scopes := make([]string, len(c.Scopes))
		for i, scope := range c.Scopes {
			scopes[i] = string(scope)
		}
		clients = append(clients, []span{{cyan, c.Name}, {dim, c.ID}, {plain, strings.Join(scopes, ", ")}})
	}
	for _, p := range t.Projects {
		projects = append(projects, []span{{cyan, p.Name}, {dim, p.ID}})
	}
	for _, f := range t.Flags {
		on := span{red, "off"}
		if len(f.Enabled) > 0 {
			on = span{green, "on in " + strings.Join(f.Enabled, ", ")}
		}
		flags = append(flags, []span{{cyan, f.Key}, {plain, string(f.Type)}, {dim, string(f.Status)}, on})
	}
	r.table("members", members)
	r.table("OAuth clients", clients)
	r.table("projects", projects)
	r.table("flags", flags)
}

// table prints rows under a title, unless there are none.
func (r *replay) table(title string, rows [][]span) {
	if len(rows) == 0 {
		return
	}
	r.screen.line()
	r.screen.line(span{bold, "  " + title}, span{dim, fmt.Sprintf("  %d", len(rows))})
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			if width := columns(cell.text); width <= maxColumn {
				widths[i] = max(widths[i], width)
			}
		}
	}
	for _, row := range rows {
		r.screen.put(span{plain, "    "})
		for i, cell := range row {
			if i == len(row)-1 || i == len(row)-2 && row[i+1].text == "" {
				r.screen.line(cell)
				break
			}
			r.screen.padded(widths[i], cell)
			r.screen.put(span{plain, "  "})
		}
	}
}
