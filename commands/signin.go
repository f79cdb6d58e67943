package commands

import (
	"context"

	"github.com/google/uuid"

	"flagledger/events"
)

// personalTenants is the namespace in which the id of a person's own tenant is derived from the person's, so that two first sign-ins at once
// make one tenant.
var personalTenants = uuid.MustParse("5b2d2f1c-5d5b-5d0e-9a57-0b1f4c1f9a3e")

// FirstEnvironments are the environments of a new tenant. Their ids are new at each call.
func FirstEnvironments() []events.EnvironmentRef {
	return []events.EnvironmentRef{
		{ID: NewID(), Name: events.DefaultEnvironment},
		{ID: NewID(), Name: "development"},
	}
}

// Welcome registers a person who signs in for the first time and gives him a tenant of his own. It may be repeated.
func Welcome(ctx context.Context, w *Writer, by By, c Claims) error {
	if _, _, err := Do(ctx, w, by, RegisterUser{ID: c.UserID, Provider: c.Provider}); err != nil {
		return err
	}
	_, _, err := Do(ctx, w, by, CreateTenant{
		ID: uuid.NewSHA1(personalTenants, []byte(c.UserID)).String(), Name: "Personal workspace", Creator: c.UserID, Environments: FirstEnvironments(),
	})
	if KindOf(err) == Conflict {
		return nil
	}
	return err
}
