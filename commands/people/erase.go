package people

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"flagledger/commands"
	"flagledger/commands/writer"
)

// PersonalData is a keeping with personal data.
type PersonalData interface {
	// Knows reports whether it holds a person's account or name.
	Knows(ctx context.Context, userID string) (bool, error)
	// Erase deletes a person's data. It is idempotent.
	Erase(ctx context.Context, userID string) error
}

// Eraser erases people from everything except the facts, which hold only ids.
type Eraser struct {
	Writer *writer.Writer
	// Tenants lists the tenants that a person created. It may miss the latest.
	Tenants interface {
		CreatedBy(ctx context.Context, userID string) ([]string, error)
	}
	// Contacts deletes the contact name of a tenant, which is usually its creator's.
	Contacts interface {
		ForgetContactNames(ctx context.Context, tenantIDs []string) error
	}
	// Keepings are all keepings with personal data.
	Keepings []PersonalData
	// Account deletes a person's account at an external identity provider; nil without one.
	Account interface {
		Delete(ctx context.Context, userID string) error
	}
}

// Erase locks a person out for good and erases their data: first by a fact, so that a half-erased person cannot sign
// in, then contact names of their tenants, the keepings, and last the external account, which they need to ask again.
//
// If a step fails, the earlier ones stay done and a retry continues: each step is idempotent. It returns NotFound, and
// does nothing, if nothing is known of the person.
func (e *Eraser) Erase(ctx context.Context, userID string) error {
	known := false
	for _, keeping := range e.Keepings {
		here, err := keeping.Knows(ctx, userID)
		if err != nil {
			return err
		}
		known = known || here
	}
	by := writer.ByService()
	by.RequestID = uuid.NewString()
	if _, _, err := writer.Do(ctx, e.Writer, by, commands.EraseUser{UserRef: commands.UserRef{UserID: userID},
		Known: known}); err != nil {
		return err
	}
	created, err := e.Tenants.CreatedBy(ctx, userID)
	if err != nil {
		return err
	}
	if err := e.Contacts.ForgetContactNames(ctx, created); err != nil {
		return err
	}
	for _, keeping := range e.Keepings {
		if err := keeping.Erase(ctx, userID); err != nil {
			return err
		}
	}
	if e.Account == nil {
		return nil
	}
	if err := e.Account.Delete(ctx, userID); err != nil {
		return fmt.Errorf("the user was erased here, but not at the identity provider: %w", err)
	}
	return nil
}
