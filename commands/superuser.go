package commands

import (
	"context"

	"flagledger/events"
)

// SuperUsers are the addresses of those who may be super users, by EmailKey.
type SuperUsers map[string]bool

// NewSuperUsers returns the list of some addresses.
func NewSuperUsers(addresses []string) SuperUsers {
	s := SuperUsers{}
	for _, address := range addresses {
		s[EmailKey(address)] = true
	}
	delete(s, "") // of what is no address
	return s
}

// Has reports whether an address, in whatever case, is on the list.
func (s SuperUsers) Has(address string) bool { return s[EmailKey(address)] }

// Addresses tells people's addresses.
type Addresses interface {
	// Email is a person's address, empty where none is known.
	Email(ctx context.Context, userID string) (string, error)
}

// ChangeRole is the command that gives a person a role on the platform, with what the list says of their address.
// Nothing is changed before it is carried out.
func (s SuperUsers) ChangeRole(
	ctx context.Context, people Addresses, userID string, role events.PlatformRole,
) (ChangePlatformRole, error) {
	email, err := people.Email(ctx, userID)
	return ChangePlatformRole{UserRef: UserRef{userID}, Role: role, Listed: s.Has(email)}, err
}
