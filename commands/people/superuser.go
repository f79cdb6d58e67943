package people

import (
	"context"

	"flagledger/commands"
	"flagledger/events"
)

// SuperUsers holds the addresses of people who may be super users, by EmailKey.
type SuperUsers map[string]bool

// NewSuperUsers returns the list of these addresses.
func NewSuperUsers(addresses []string) SuperUsers {
	s := SuperUsers{}
	for _, address := range addresses {
		s[commands.EmailKey(address)] = true
	}
	delete(s, "") // from invalid addresses
	return s
}

// Has reports whether an address is on the list, ignoring case.
func (s SuperUsers) Has(address string) bool { return s[commands.EmailKey(address)] }

// Addresses looks up people's addresses.
type Addresses interface {
	// Email returns a person's address, or "" if unknown.
	Email(ctx context.Context, userID string) (string, error)
}

// ChangeRole returns the command that gives a person a platform role, with whether their address is listed. It changes
// nothing by itself.
func (s SuperUsers) ChangeRole(
	ctx context.Context, people Addresses, userID string, role events.PlatformRole,
) (commands.ChangePlatformRole, error) {
	email, err := people.Email(ctx, userID)
	return commands.ChangePlatformRole{UserRef: commands.UserRef{UserID: userID}, Role: role, Listed: s.Has(email)}, err
}
