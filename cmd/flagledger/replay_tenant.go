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
	"flagledger/events/state"
)

// tenantState is a tenant in JSON.
type tenantState struct {
	ID           string         `json:"id"`
	Name         string         `json:"name"`
	Sandbox      bool           `json:"sandbox"`
	Plan         events.Plan    `json:"plan"`
	Status       string         `json:"subscription"`
	Environments []string       `json:"environments"`
	Members      []memberState  `json:"members"`
	Clients      []clientState  `json:"oauthClients"`
	Projects     []projectState `json:"projects"`
	Flags        []flagState    `json:"flags"`
}

type memberState struct {
	ID      string      `json:"userId"`
	Name    string      `json:"name"` // today's
	Role    events.Role `json:"role"`
	Pending bool        `json:"pending"`
}

type clientState struct {
	ID     string         `json:"clientId"`
	Name   string         `json:"name"`
	Scopes []events.Scope `json:"scopes"`
}

type flagState struct {
	Key     string            `json:"key"`
	Name    string            `json:"name"`
	Type    events.FlagType   `json:"type"`
	Status  events.FlagStatus `json:"status"`
	Enabled []string          `json:"enabledIn"`
}

// tenantStates are the states of all streams of a tenant.
type tenantStates struct {
	tenant   state.Tenant
	projects map[string]*state.Project // by stream, as are flags
	flags    map[string]*state.Flag    // without what takes much memory and is not printed
}

func (t *tenantStates) apply(e events.Recorded) {
	switch e.Fact.(type) {
	case events.ProjectDeleted:
		delete(t.projects, e.Stream)
	case events.FlagDeleted:
		delete(t.flags, e.Stream)
	case events.TenantFact:
		t.tenant.Apply(e)
	case events.ProjectFact:
		if t.projects[e.Stream] == nil {
			t.projects[e.Stream] = &state.Project{}
		}
		t.projects[e.Stream].Apply(e)
	case events.FlagFact:
		if t.flags[e.Stream] == nil {
			t.flags[e.Stream] = &state.Flag{}
		}
		f := t.flags[e.Stream]
		f.Apply(e)
		f.DefaultValue, f.Description, f.Tags, f.Variations, f.Rules, f.Fallthrough = nil, "", nil, nil, nil, nil
	}
}

// printTenant prints the tenant at a time.
func (r *replay) printTenant(ctx context.Context, at time.Time) error {
	states := tenantStates{projects: map[string]*state.Project{}, flags: map[string]*state.Flag{}}
	facts := 0
reading:
	for page, err := range r.facts(ctx) {
		if err != nil {
			return err
		}
		for _, e := range page {
			if e.At.After(at) {
				break reading
			}
			if facts++; r.known(e) {
				states.apply(e)
			}
		}
	}
	if facts == 0 {
		return fmt.Errorf("%w by then", r.notFound())
	}
	var t *tenantState
	if states.tenant.Exists {
		t = r.showTenant(ctx, states)
	}
	if r.form.json {
		return r.putJSON(struct {
			At     string       `json:"at"`
			Facts  int          `json:"facts"`
			Tenant *tenantState `json:"tenant"`
		}{at.UTC().Format(time.RFC3339Nano), facts, t})
	}
	words := []span{{bold, "Tenant " + r.Tenant}}
	if t == nil {
		words = append(words, span{red, "  deleted"})
	}
	r.screen.line(
		append(words, span{dim, fmt.Sprintf("  at %s, after %d facts", at.UTC().Format(time.RFC3339Nano), facts)})...)
	if t != nil {
		r.tenantFields(t)
	}
	return nil
}

// showTenant shows a tenant with lists in order.
func (r *replay) showTenant(ctx context.Context, states tenantStates) *tenantState {
	t := &states.tenant
	shown := &tenantState{
		ID:           t.ID,
		Name:         t.Name,
		Sandbox:      t.Sandbox,
		Plan:         t.Subscription.Plan,
		Status:       string(t.Subscription.Status),
		Environments: []string{},
	}
	for _, e := range t.Environments {
		shown.Environments = append(shown.Environments, e.Name)
	}
	names := r.findNames(ctx, slices.Collect(maps.Keys(t.Members)))
	shown.Members = showSorted(t.Members, func(id string, m state.Member) memberState {
		return memberState{id, memberName(id, names), m.Role, m.Pending}
	}, func(m memberState) string { return m.Name + " " + m.ID })
	shown.Clients = showSorted(t.Clients, func(id string, c state.OAuthClient) clientState {
		return clientState{id, c.Name, c.Scopes}
	}, func(c clientState) string { return c.Name + " " + c.ID })
	shown.Projects = showSorted(states.projects, func(stream string, p *state.Project) projectState {
		return r.showProject(stream, *p)
	}, func(p projectState) string { return p.Name + " " + p.ID })
	shown.Flags = showSorted(states.flags, func(stream string, f *state.Flag) flagState {
		_, key := events.ParseFlagStream(stream)
		enabled := []string{}
		for _, e := range t.Environments {
			if f.Enabled.Has(e.ID) {
				enabled = append(enabled, e.Name)
			}
		}
		return flagState{key, f.Name, f.Type, f.Status, enabled}
	}, func(f flagState) string { return f.Key })
	return shown
}

func showSorted[S, T any](all map[string]S, show func(key string, one S) T, by func(T) string) []T {
	list := make([]T, 0, len(all))
	for key, one := range all {
		list = append(list, show(key, one))
	}
	slices.SortFunc(list, func(a, b T) int { return cmp.Compare(by(a), by(b)) })
	return list
}

func (r *replay) tenantFields(t *tenantState) {
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
		member := []span{{cyan, m.Name}, {plain, string(m.Role)}}
		if m.Pending {
			member = append(member, span{dim, "invited"})
		}
		members = append(members, member)
	}
	for _, c := range t.Clients {
		scopes := strings.Trim(fmt.Sprint(c.Scopes), "[]")
		clients = append(clients, []span{{cyan, c.Name}, {dim, c.ID}, {plain, scopes}})
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
