// Command story tells the main story with a client that is made from the OpenAPI document: what does not fit the
// document does not compile.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"reflect"

	"github.com/oapi-codegen/runtime/types"

	"clienttest/client"
)

func main() {
	if err := story(context.Background(), os.Getenv("SERVICE_URL"), os.Getenv("STORY_EMAIL")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func story(ctx context.Context, url, email string) error {
	const password, key = "correct horse", "from-go"
	token := ""
	c, err := client.NewClientWithResponses(url, client.WithRequestEditorFn(func(_ context.Context,
		r *http.Request) error {
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		return nil
	}))
	if err != nil {
		return err
	}
	signedUp, err := c.SignUpWithResponse(ctx, client.SignUpBody{Email: new(types.Email(email)), Password: new(password),
		DisplayName: new("Ada")})
	if err != nil || signedUp.JSON201 == nil {
		return fmt.Errorf("sign-up: %w, %+v", err, signedUp)
	}
	session, err := c.LegacySignInWithResponse(ctx, client.Credentials{Email: email, Password: password})
	if err != nil || session.JSON200 == nil {
		return fmt.Errorf("sign-in: %w, %+v", err, session)
	}
	token = session.JSON200.Token
	tenant := signedUp.JSON201.Data.ActiveTenantId
	created, err := c.CreateFlagWithResponse(ctx, &client.CreateFlagParams{XTenantID: tenant},
		client.CreateFlagBody{Key: key, Type: "boolean"})
	if err != nil || created.JSON201 == nil || created.JSON201.Key != key || created.JSON201.ProjectId != nil {
		return fmt.Errorf("a new flag: %w, %+v", err, created)
	}
	serves := func(enabled bool, value any, reason client.EvaluationBodyReason) error {
		got, err := c.EvaluateFlagWithResponse(ctx, key, &client.EvaluateFlagParams{XTenantID: &tenant},
			client.ContextBody{TargetingKey: new("user-42")})
		if err != nil || got.JSON200 == nil || got.JSON200.Enabled != enabled || got.JSON200.Value != value ||
			got.JSON200.Reason != reason {
			return fmt.Errorf("an evaluation, want %v, %v, %s: %w, %+v", enabled, value, reason, err, got)
		}
		return nil
	}
	if err := serves(false, false, "OFF"); err != nil {
		return err
	}
	enabled, err := c.EnableFlagWithResponse(ctx, key, &client.EnableFlagParams{XTenantID: &tenant})
	if err != nil || enabled.JSON200 == nil || !enabled.JSON200.Success {
		return fmt.Errorf("switching it on: %w, %+v", err, enabled)
	}
	if err := serves(true, true, "FALLTHROUGH"); err != nil {
		return err
	}
	history, err := c.GetFlagHistoryWithResponse(ctx, key, &client.GetFlagHistoryParams{XTenantID: &tenant})
	if err != nil || history.JSON200 == nil {
		return fmt.Errorf("its history: %w, %+v", err, history)
	}
	var got [][2]string
	for _, entry := range *history.JSON200 {
		got = append(got, [2]string{string(entry.Action), entry.UserName})
	}
	if want := [][2]string{{"enabled", "Ada"}, {"created", "Ada"}}; !reflect.DeepEqual(got, want) {
		return fmt.Errorf("its history: %v, want %v", got, want)
	}
	refused, err := c.GetFlagWithResponse(ctx, "none", &client.GetFlagParams{XTenantID: tenant})
	if err != nil || refused.ApplicationproblemJSON404 == nil || refused.ApplicationproblemJSON404.Title != "Not Found" {
		return fmt.Errorf("a flag that is not there: %w, %+v", err, refused)
	}
	return nil
}
