package accounts

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"flagledger/commands/keep/tours"
	"flagledger/commands/people"
	"flagledger/commands/writer"
	"flagledger/events"
	"flagledger/events/rules"
	"flagledger/http/rest"
	"flagledger/queries"
)

type tourBody struct {
	Completed   bool            `json:"completed" example:"true"`
	CompletedAt *rest.Timestamp `json:"completed_at" nullable:"true" doc:"null while the tour is not completed"`
	CreatedAt   *rest.Timestamp `json:"created_at" nullable:"true" doc:"null if the person has not begun the tour"`
	UpdatedAt   *rest.Timestamp `json:"updated_at" nullable:"true"`
}

type tourOutput struct{ Body tourBody }

func showTour(s tours.Status) *tourOutput {
	return &tourOutput{
		tourBody{
			Completed:   s.CompletedAt != nil,
			CompletedAt: (*rest.Timestamp)(s.CompletedAt),
			CreatedAt:   (*rest.Timestamp)(s.CreatedAt),
			UpdatedAt:   (*rest.Timestamp)(s.UpdatedAt),
		},
	}
}

type setTourBody struct {
	Completed   *bool   `json:"completed" example:"true"`
	CompletedAt *string `json:"completed_at,omitempty" nullable:"true" format:"date-time" doc:"The default is now" example:"2026-03-14T15:09:26.535Z"`
}

// completedAt returns the time of completion, or nil if the tour is not completed. It adds the body's errors to wrong.
func (b setTourBody) completedAt(now time.Time, wrong map[string]string) *time.Time {
	switch {
	case b.Completed == nil:
		wrong["completed"] = "is required"
		return nil
	case b.CompletedAt == nil && *b.Completed:
		return &now
	case b.CompletedAt == nil:
		return nil
	case !*b.Completed:
		wrong["completed_at"] = "must not be sent with completed false"
		return nil
	}
	at, readable := rules.ParseTime(*b.CompletedAt)
	if !readable || at.Year() < 1 || at.Year() > 9999 {
		wrong["completed_at"] = queries.ErrNotTime.Error()
	}
	return &at
}

// TourPath names a product tour of a person.
type TourPath struct {
	UserID string `path:"userId" example:"0198c5a0-d3c2-7e19-9a75-2b8f6c4d1e05"`
	Key    string `path:"tourKey" doc:"Letters, digits and . _ - @ :; @ may be percent-encoded" example:"flags@2"`
}

func (a *API) addProductTours() {
	const tag, path = "Product tours", "/users/{userId}/product-tours/{tourKey}"
	const whose = "For the person, and for the admins of their tenants; for other callers it is 404."
	get := rest.Operation("GET", "/api/v1"+path, "get-product-tour", tag, "A person's progress in a product tour")
	get.Description = whose
	rest.Register(a.Core, rest.Access{Who: rest.Person}, get,
		func(ctx context.Context, in *TourPath) (*tourOutput, error) {
			wrong := map[string]string{}
			person, key, err := a.tour(ctx, *in, wrong)
			if err := cmp.Or(err, rest.WrongFields(wrong)); err != nil {
				return nil, err
			}
			status, err := a.Tours.Status(ctx, person, key)
			return showTour(status), err
		})
	set := rest.Operation("PUT", "/api/v1"+path, "set-product-tour", tag,
		"Mark a product tour as completed or not completed")
	set.Description = whose + " The number of a person's tours that they and admins may set is limited (409)."
	set.Errors = []int{http.StatusConflict}
	rest.Register(a.Core, rest.Access{Who: rest.Person}, set, func(ctx context.Context, in *struct {
		TourPath
		Body setTourBody
	}) (*tourOutput, error) {
		wrong, now := map[string]string{}, a.Now()
		person, key, err := a.tour(ctx, in.TourPath, wrong)
		if err != nil {
			return nil, err
		}
		completedAt := in.Body.completedAt(now, wrong)
		if err := rest.AddBodyErrors(ctx, rest.WrongFields(wrong)); err != nil {
			return nil, err
		}
		status, err := a.Tours.Set(ctx, person, key, completedAt, person == rest.PrincipalOf(ctx).Claims.UserID, now)
		return showTour(status), err
	})
	reset := rest.Operation("DELETE", "/api/v1"+path, "reset-product-tour", tag, "Reset a person's product tour")
	reset.Description = whose
	reset.DefaultStatus = http.StatusNoContent
	rest.Register(a.Core, rest.Access{Who: rest.Person}, reset,
		func(ctx context.Context, in *TourPath) (*rest.NoContent, error) {
			wrong := map[string]string{}
			person, key, err := a.tour(ctx, *in, wrong)
			if err := cmp.Or(err, rest.WrongFields(wrong)); err != nil {
				return nil, err
			}
			return &rest.NoContent{}, a.Tours.Reset(ctx, person, key)
		})
}

// tour returns the person and the key of a path. The error is a 404 unless the caller is that person or an admin of one
// of their tenants. An invalid key is added to wrong.
func (a *API) tour(ctx context.Context, in TourPath, wrong map[string]string) (person, key string, err error) {
	person, key = in.UserID, in.Key
	allowed, err := a.administers(ctx, rest.PrincipalOf(ctx).Claims, person)
	if err != nil {
		return "", "", err
	}
	if !allowed {
		return "", "", rest.NewProblem(http.StatusNotFound, "there is no such person")
	}
	if !tours.ValidKey(key) {
		wrong["tourKey"] = fmt.Sprintf("must be 1 to %d letters, digits and . _ - @ :", tours.MaxKey)
	}
	return person, key, nil
}

// administers reports whether the caller is the person, or an admin of a tenant in which the person is a confirmed
// member.
func (a *API) administers(ctx context.Context, c people.Claims, person string) (bool, error) {
	if c.UserID == person {
		return true, nil
	}
	for _, id := range a.TenantsOf(c) {
		if a.Live.RoleIn(id, c.UserID) != events.AdminRole || a.Live.RoleIn(id, person) == "" {
			continue
		}
		tenant, err := writer.ReadTenant(ctx, a.Writer, id)
		if err != nil {
			return false, err
		}
		if confirmed, err := people.HasConfirmed(ctx, a.Directory, tenant, person); confirmed || err != nil {
			return confirmed, err
		}
	}
	return false, nil
}
