package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"flagledger/events"
	"flagledger/queries"
)

// noteNames notes what the variations and the rules of a flag are called, before the fact is printed. Those of many
// flags are too many.
func (r *replay) noteNames(e events.Recorded) {
	if r.Flag == nil {
		return
	}
	switch fact := e.Fact.(type) {
	case events.FlagCreated:
		clear(r.variations)
		clear(r.rules)
		for _, v := range fact.Variations {
			r.variations[v.ID] = v.Name
		}
	case events.VariationAdded:
		r.variations[fact.Variation.ID] = fact.Variation.Name
	case events.VariationUpdated:
		if fact.Name != nil {
			r.variations[fact.ID] = fact.Name.To
		}
	case events.RulesChanged:
		for _, rule := range fact.Added {
			r.rules[rule.ID] = rule.Name
		}
		for _, change := range fact.Changed {
			r.rules[change.To.ID] = change.To.Name
		}
	}
}

// dropNames forgets what is gone after a fact.
func (r *replay) dropNames(e events.Recorded) {
	switch fact := e.Fact.(type) {
	case events.VariationRemoved:
		delete(r.variations, fact.Variation.ID)
	case events.RulesChanged:
		for _, rule := range fact.Removed {
			delete(r.rules, rule.ID)
		}
	}
}

// namesOf finds the names of the people and clients in facts, as they are today. Where they cannot be read, it tells so
// once.
func (r *replay) namesOf(ctx context.Context, list []describedFact) map[string]queries.Name {
	var ids []string
	for _, f := range list {
		if f.Actor.Kind != events.SystemActor {
			ids = append(ids, f.Actor.ID)
		}
		if f.ResourceType == "member" {
			ids = append(ids, f.ResourceID)
		}
	}
	return r.findNames(ctx, ids)
}

func (r *replay) findNames(ctx context.Context, ids []string) map[string]queries.Name {
	slices.Sort(ids)
	names, err := r.names.Names(ctx, r.Tenant, slices.Compact(ids))
	if err != nil && ctx.Err() == nil && !r.nameless {
		r.nameless = true
		r.log.Warn("names of people and clients cannot be read: ids stand in their place", "err", err)
	}
	return names
}

const (
	erasedUser          = "erased user"
	invitedPerson       = "the invited person"
	withdrawnInvitation = "withdrawn invitation"
)

// actorName is what an actor is called; known is false for somebody who was erased.
func actorName(by events.Actor, names map[string]queries.Name) (name string, known bool) {
	found, read := names[by.ID]
	switch {
	case by.Kind == events.SystemActor:
		return by.ID + " (system)", true
	case by.Kind == events.InvitedActor:
		return invitedPerson, true
	case by.Kind == events.ClientActor:
		return cmp.Or(found.Text, by.ID) + " (client)", true
	case read && (!found.Listed || found.Erased):
		return erasedUser, false
	}
	return cmp.Or(found.Text, by.ID), true
}

// memberName is what a member is called, as in lists.
func memberName(id string, names map[string]queries.Name) string {
	switch name := names[id]; {
	case name.Withdrawn:
		return withdrawnInvitation
	case name.Erased:
		return erasedUser
	default:
		return cmp.Or(name.Text, id)
	}
}

// resourceName is what a fact is about, with the version that it gave a flag or a project.
func resourceName(f describedFact, names map[string]queries.Name) string {
	switch f.ResourceType {
	case "": // unknown
		return f.Stream
	case "tenant", "subscription":
		return f.ResourceType
	case "flag":
		return fmt.Sprintf("flag %s v%d", f.ResourceID, f.Revision)
	case "project":
		return fmt.Sprintf("project %s v%d", cmp.Or(f.name, f.ResourceID), f.Revision)
	case "oauth_client":
		return "client " + cmp.Or(f.name, f.ResourceID)
	case "member":
		return "member " + memberName(f.ResourceID, names)
	}
	return f.ResourceType + " " + cmp.Or(f.name, f.ResourceID)
}
