package systemtest

import (
	"strings"
	"testing"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
)

// Platform roles from development remain: a start in production reports them.
func TestProductionTellsOfRolesOnThePlatform(t *testing.T) {
	t.Parallel()
	database := nodetest.Database(t)
	const told = "people have roles on the platform"
	development := nodetest.Start(t, database,
		settings.Config{Environment: "development", SuperUsers: []string{"boss@example.com"}}, nodetest.Log(t))
	boss, helper := development.SignUp("boss@example.com"), development.SignUp("helper@example.com")
	boss.Call("PATCH", "/api/v1/admin/users/"+helper.UserID+"/role", `{"role":"admin"}`).Want(200)
	boss.Call("POST", "/api/v1/admin/invitations", `{"email":"other@example.com","role":"viewer"}`).Want(201)
	book := &nodetest.LogBook{}
	s := nodetest.Start(t, database, settings.Config{Environment: "production"}, book.Logger())
	line := ""
	s.Eventually("the log tells of them", func() bool {
		for line = range strings.Lines(book.String()) {
			if strings.Contains(line, told) {
				return true
			}
		}
		return false
	})
	if !strings.Contains(line, `"people":1`) || !strings.Contains(line, `"invitations":1`) ||
		strings.Contains(line, "example.com") {
		t.Errorf("it tells of others: %s", line)
	}
}
