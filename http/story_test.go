package http_test

import (
	"slices"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

// From the first sign-up, a colleague is invited, signs up, toggles a flag and is removed. The flag's history names
// both people.
func TestAStory(t *testing.T) { nodetest.BothEngines(t, testAStory) }

func testAStory(t *testing.T) {
	t.Parallel()
	tellStory(t, nodetest.Shared(t))
}

func tellStory(t *testing.T, s *nodetest.Service) {
	t.Helper()
	signUp := func(email, name string) *nodetest.Client {
		body := map[string]string{"email": email, "password": nodetest.Password, "displayName": name}
		session := s.Anonymous().Call("POST", "/auth/signup", body).Want(201).Object()
		return &nodetest.Client{
			Service: s,
			Token:   session["token"].(string),
			UserID:  session["user"].(map[string]any)["id"].(string),
		}
	}
	ada := signUp(nodetest.Address(), "Ada Lovelace")
	ada = ada.NewTenant("Analytical Engines")
	ada.CreateFlag("steam", map[string]any{"description": "Runs on steam"})

	email := nodetest.Address()
	ada.Call("POST", usersPath(ada), map[string]string{"email": strings.ToUpper(email), "role": "developer"}).
		Want(201).
		Shows(map[string]any{"pending": true})
	charles := signUp(email, "Charles Babbage")
	charles.Tenant = ada.Tenant
	nodetest.Same(t, "what Charles is a member of",
		nodetest.Column(charles.Call("GET", "/api/v1/tenants", nil).Want(200).List(), "name"),
		[]string{"Analytical Engines", "Personal workspace"})
	nodetest.Same(t, "the members", nodetest.Column(ada.Call("GET", usersPath(ada), nil).Want(200).List(), "displayName"),
		[]string{"Ada Lovelace", "Charles Babbage"})
	charles.Call("POST", nodetest.FlagPath("steam", "/enable"), nil, "X-Change-Reason", "the boiler is hot").Want(200)
	ada.Evaluate("steam", `{}`).Want(200).Shows(map[string]any{"value": true})

	ada.Call("DELETE", usersPath(ada, charles.UserID), nil).Want(204)
	charles.Call("POST", nodetest.FlagPath("steam", "/disable"), nil).Refused(403)
	charles.Evaluate("steam", `{}`).Refused(403)
	nodetest.Same(t, "what Charles is a member of then",
		nodetest.Column(charles.Call("GET", "/api/v1/tenants", nil, "X-Tenant-ID", "").Want(200).List(), "name"),
		[]string{"Personal workspace"})
	history := ada.History("steam", "")
	slices.Reverse(history)
	nodetest.Same(t, "who did it", nodetest.Column(history, "userName"), []string{"Ada Lovelace", "Charles Babbage"})
	nodetest.Same(t, "who Charles was", []any{history[1]["userId"], history[1]["action"], history[1]["reason"]},
		[]any{charles.UserID, "enabled", "the boiler is hot"})
	ada.Evaluate("steam", `{}`).Want(200).Shows(map[string]any{"value": true})
}
