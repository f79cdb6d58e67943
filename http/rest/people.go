package rest

import (
	"cmp"

	"flagledger/events"
	"flagledger/queries"
)

// ErasedUser is shown for a person whose name the directory no longer has.
const ErasedUser = "erased user"

// invitedPerson is shown for a person who declined an invitation: the tenant does not know them.
const invitedPerson = "the invited person"

// ActorName returns the name of an actor, or their id if they have none.
func ActorName(a queries.Actor) string {
	switch {
	case a.ActorKind == string(events.InvitedActor):
		return invitedPerson
	case !a.ActorKnown:
		return ErasedUser
	default:
		return cmp.Or(a.ActorName, a.ActorID)
	}
}

// withdrawnInvitation is shown for a pending member whose invitation was withdrawn and whose address was erased.
const withdrawnInvitation = "withdrawn invitation"

// UnknownName returns the name to show for a member who is not in the directory.
func UnknownName(withdrawn bool) string {
	if withdrawn {
		return withdrawnInvitation
	}
	return ErasedUser
}
