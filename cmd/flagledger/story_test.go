package main

import (
	"slices"
	"strings"
	"testing"
)

// One story, from the first sign-up on: a colleague is invited, signs up, toggles a flag and is removed, and the flag's history names both.
func TestAStory(t *testing.T) {
	t.Parallel()
	s := newService(t)
	signUp := func(email, name string) *client {
		body := map[string]string{"email": email, "password": password, "displayName": name}
		session := s.anonymous().call("POST", "/auth/signup", body).want(201).object()
		return &client{s: s, token: session["token"].(string), userID: session["user"].(map[string]any)["id"].(string)}
	}
	ada := signUp(address(), "Ada Lovelace")
	ada = ada.newTenant("Analytical Engines")
	ada.createFlag("steam", map[string]any{"description": "Runs on steam"})

	email := address()
	ada.call("POST", usersPath(ada), map[string]string{"email": strings.ToUpper(email), "role": "developer"}).want(201).shows(map[string]any{"pending": true})
	charles := signUp(email, "Charles Babbage")
	charles.tenant = ada.tenant
	same(t, "what he is a member of", column(charles.call("GET", "/api/v1/tenants", nil).want(200).list(), "name"), []string{"Analytical Engines", "Personal workspace"})
	same(t, "the members", column(ada.call("GET", usersPath(ada), nil).want(200).list(), "displayName"), []string{"Ada Lovelace", "Charles Babbage"})
	charles.call("POST", flagPath("steam", "/enable"), nil, "X-Change-Reason", "the boiler is hot").want(200)
	ada.evaluate("steam", `{}`).want(200).shows(map[string]any{"value": true})

	ada.call("DELETE", usersPath(ada, charles.userID), nil).want(204)
	charles.call("POST", flagPath("steam", "/disable"), nil).refused(403)
	charles.evaluate("steam", `{}`).refused(403)
	same(t, "what he is a member of then", column(charles.call("GET", "/api/v1/tenants", nil, "X-Tenant-ID", "").want(200).list(), "name"), []string{"Personal workspace"})
	history := ada.history("steam", "")
	slices.Reverse(history)
	same(t, "who did it", column(history, "userName"), []string{"Ada Lovelace", "Charles Babbage"})
	same(t, "who he was", []any{history[1]["userId"], history[1]["action"], history[1]["reason"]}, []any{charles.userID, "enabled", "the boiler is hot"})
	ada.evaluate("steam", `{}`).want(200).shows(map[string]any{"value": true})
}
