package main

import (
	"cmp"
	"context"
	"slices"

	"flagledger/events"
	"flagledger/queries"
)

// namesOf finds today's names of the people and clients in facts.
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

// findNames finds today's names. If they cannot be read, it warns once.
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

// actorName returns the name of an actor.
func actorName(by events.Actor, names map[string]queries.Name) string {
	found, read := names[by.ID]
	switch {
	case by.Kind == events.SystemActor:
		return by.ID + " (system)"
	case by.Kind == events.InvitedActor:
		return invitedPerson
	case by.Kind == events.ClientActor:
		return cmp.Or(found.Text, by.ID) + " (client)"
	case read && (!found.Listed || found.Erased):
		return erasedUser
	}
	return cmp.Or(found.Text, by.ID)
}

// memberName returns the name of a member, as lists have it.
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
