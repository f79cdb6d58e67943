package commands

import (
	"context"
	"fmt"

	"github.com/google/uuid"
)

// PersonalData is a keeping that holds personal data, and can erase that of one person.
type PersonalData interface {
	// Knows reports whether it holds a person's account or name.
	Knows(ctx context.Context, userID string) (bool, error)
	// Erase drops all that it holds of a person. It may be repeated.
	Erase(ctx context.Context, userID string) error
}

// Eraser erases people from everything but the facts, which hold ids alone.
type Eraser struct {
	Writer *Writer
	// Tenants lists the tenants that a person created. It may miss one that was created just now.
	Tenants interface {
		CreatedBy(ctx context.Context, userID string) ([]string, error)
	}
	// Contacts drops the name of whom to write to about tenants: most likely it is their creator's.
	Contacts interface {
		ForgetContactNames(ctx context.Context, tenantIDs []string) error
	}
	// Keepings are all that hold something of people.
	Keepings []PersonalData
	// Account deletes a person's account at an identity provider outside; nil where there is none.
	Account interface {
		Delete(ctx context.Context, userID string) error
	}
}

// Erase shuts a person out for good and then erases what is known of them, in this order:
//
//  1. the fact, so that nobody is half erased and still let in;
//  2. the name of whom to write to about the tenants that they created;
//  3. what the keepings hold, each its own;
//  4. the account at the identity provider outside, without which nobody could sign in to ask for it.
//
// Where a step fails, those before it stay done, and Erase is called again: each step may be repeated. The error is
// NotFound for somebody of whom nothing is known, and nothing is done then.
func (e *Eraser) Erase(ctx context.Context, userID string) error {
	known := false
	for _, keeping := range e.Keepings {
		here, err := keeping.Knows(ctx, userID)
		if err != nil {
			return err
		}
		known = known || here
	}
	by := ByService()
	by.RequestID = uuid.NewString()
	if _, _, err := Do(ctx, e.Writer, by, EraseUser{UserRef: UserRef{userID}, Known: known}); err != nil {
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
		return fmt.Errorf("the user is erased here, but not at the identity provider: %w", err)
	}
	return nil
}
