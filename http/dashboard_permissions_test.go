package http_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
)

// The dashboard's table of permissions offers each role exactly what the service allows.
func TestDashboardOffersWhatRolesMay(t *testing.T) {
	t.Parallel()
	s := nodetest.Start(t, nodetest.Database(t), settings.Config{
		Environment: "development", SuperUsers: []string{"root@example.com"},
	}, nodetest.Log(t))
	text, err := os.ReadFile("dashboard/src/permissions.ts")
	if err != nil {
		t.Fatal(err)
	}
	type call struct{ method, path, body string }
	// A role with permission gets a 4xx about the request's content. Only a role without permission gets 403.
	const nobody = "0198c5a0-d3c2-7e19-9a75-2b8f6c4d1e05"
	tenant := func(id string) map[string][]call {
		path := "/api/v1/tenants/" + id
		return map[string][]call{
			"changeFlags": {
				{"POST", "/api/v1/flags", `{}`}, {"PATCH", "/api/v1/flags/none", `{}`}, {"DELETE", "/api/v1/flags/none", ""},
				{"POST", "/api/v1/flags/none/enable", ""}, {"POST", "/api/v1/flags/none/disable", ""},
				{"POST", "/api/v1/flags/none/variations", `{}`}, {"PATCH", "/api/v1/flags/none/variations/" + nobody, `{}`},
				{"DELETE", "/api/v1/flags/none/variations/" + nobody, ""}, {"PUT", "/api/v1/flags/none/rules", `{"rules":[]}`},
				{"PUT", "/api/v1/flags/none/fallthrough", `{"serve":null}`}, {"POST", "/api/v1/flags/none/revert", `{"version":1}`},
				{"POST", "/api/v1/flags/revert", `{"at":"yesterday"}`},
				{"POST", "/api/v1/segments", `{}`}, {"PATCH", "/api/v1/segments/none", `{}`}, {"DELETE", "/api/v1/segments/none", ""},
				{"PUT", "/api/v1/segments/none/rules", `{"rules":[]}`}, {"POST", "/api/v1/segments/none/members", `{"list":"included"}`},
				{"POST", "/api/v1/segments/none/revert", `{"version":1}`},
				{"PUT", "/api/v1/flags/none/prerequisites", `{"prerequisites":[]}`},
			},
			"forgetMembers": {{"POST", "/api/v1/segments/none/forget", ""}},
			"changeProjects": {
				{
					"POST",
					"/api/v1/projects",
					`{}`,
				},
				{"PATCH", "/api/v1/projects/" + nobody, `{}`},
				{"DELETE", "/api/v1/projects/" + nobody, ""},
			},
			"changeEnvironments": {{"POST", path + "/environments", `{}`}, {"DELETE", path + "/environments/none", ""},
				{"PUT", path + "/environments/settings", `{}`}},
			"changeFlagRules": {{"PUT", path + "/flag-rules", `{}`}},
			"changeTenant":    {{"PATCH", path, `{"name":""}`}, {"POST", "/api/v1/sandbox/cleanup/tenant", ""}},
			"removeTenant":    {{"DELETE", path, ""}}, // the last one
			"changeMembers": {
				{"POST", path + "/users", `{}`}, {"PATCH", path + "/users/" + nobody, `{"role":"viewer"}`},
				{"DELETE", path + "/users/" + nobody, ""},
			},
			"manageClients": {
				{"GET", "/api/v1/oauth/clients", ""}, {"POST", "/api/v1/oauth/clients", `{}`},
				{"DELETE", "/api/v1/oauth/clients/none", ""}, {"POST", "/api/v1/oauth/clients/none/rotate", ""},
			},
			"manageKeys": {
				{"POST", keysPath, `{}`}, {"PATCH", keysPath + "/none", `{"name":""}`}, {"DELETE", keysPath + "/none", ""},
				{"POST", keysPath + "/none/rotate", ""},
			},
			"changePlan": {{"POST", "/api/v1/billing/checkout", `{}`}, {"POST", "/api/v1/billing/portal", `{}`}},
			"readFacts":  {{"GET", "/api/v1/audit/facts", ""}},
		}
	}
	const admin = "/api/v1/admin"
	platform := map[string][]call{
		"readTenants": {{"GET", admin + "/tenants", ""}},
		"readPeople":  {{"GET", admin + "/users", ""}},
		"readTrail":   {{"GET", admin + "/audit", ""}},
		"readService": {{"GET", admin + "/status", ""}},
		"changePeople": {
			{"PATCH", admin + "/users/" + nobody + "/deactivate", ""},
			{"PATCH", admin + "/users/" + nobody + "/reactivate", ""},
			{"PATCH", admin + "/users/" + nobody + "/role", `{"role":null}`},
		},
		"manageInvitations": {
			{"GET", admin + "/invitations", ""}, {"POST", admin + "/invitations", `{}`},
			{"DELETE", admin + "/invitations/" + nobody, ""},
			{"POST", admin + "/invitations/" + nobody + "/resend", ""},
		},
	}
	asked := map[string]bool{}
	check := func(table string, roles []string, people map[string]*nodetest.Client, acts map[string][]call) {
		t.Helper()
		least := readLeastRoles(t, text, table)
		for _, act := range slices.Sorted(maps.Keys(acts)) {
			calls, from := acts[act], slices.Index(roles, least[act])
			if from < 0 {
				t.Errorf("%s gives %s to the role %q", table, act, least[act])
				continue
			}
			for _, c := range calls {
				asked[c.method+" "+c.path] = true
			}
			for i, role := range roles {
				for _, c := range calls {
					var body any
					if c.body != "" {
						body = c.body
					}
					status := people[role].Call(c.method, c.path, body).Status
					if allowed := status != 403; allowed != (i >= from) {
						t.Errorf("%s, %s: %s %s is answered with %d", role, act, c.method, c.path, status)
					}
				}
			}
		}
		if len(least) != len(acts) {
			t.Errorf("%s has %d acts, and the service was asked about %d", table, len(least), len(acts))
		}
	}

	owner := s.SignUp(nodetest.Address())
	people := map[string]*nodetest.Client{"admin": owner}
	for _, role := range []events.Role{events.ViewerRole, events.DeveloperRole} {
		people[string(role)] = owner.Join(role)
	}
	check("tenantActs", []string{"viewer", "developer", "admin"}, people, tenant(owner.Tenant))

	root := s.SignUp("root@example.com")
	operators := map[string]*nodetest.Client{"super_user": root}
	for _, role := range []string{"viewer", "admin"} {
		operators[role] = s.SignUp(nodetest.Address())
		root.Call("PATCH", admin+"/users/"+operators[role].UserID+"/role", map[string]any{"role": role}).Want(200)
	}
	check("platformActs", []string{"viewer", "admin", "super_user"}, operators, platform)

	for _, operation := range callsOfDashboard(t) {
		if roleRank(leastRole(operation)) <= roleRank("viewer") {
			continue
		}
		of := regexp.MustCompile("^" + regexp.MustCompile(`\{\w+\}`).ReplaceAllString(operation, "[^/]+") + "$")
		if !slices.ContainsFunc(slices.Collect(maps.Keys(asked)), of.MatchString) {
			t.Errorf("the dashboard makes the call %s, which no act of the tables has", operation)
		}
	}
}

// callsOfDashboard lists the operations that the dashboard calls.
func callsOfDashboard(t *testing.T) (operations []string) {
	t.Helper()
	call := regexp.MustCompile(`api\.(GET|POST|PUT|PATCH|DELETE)\(\s*'([^']+)'`)
	err := fs.WalkDir(os.DirFS("dashboard/src"), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path == "api/schema.d.ts" {
			return err
		}
		text, err := os.ReadFile(filepath.Join("dashboard/src", path))
		for _, found := range call.FindAllSubmatch(text, -1) {
			operations = append(operations, string(found[1])+" "+string(found[2]))
		}
		return err
	})
	if err != nil || len(operations) < 20 {
		t.Fatalf("only %d calls are found: %v", len(operations), err)
	}
	return operations
}

// readLeastRoles reads a table of the dashboard: the least role for each action.
func readLeastRoles(t *testing.T, text []byte, table string) map[string]string {
	t.Helper()
	block := regexp.MustCompile(`(?s)const ` + table + ` = \{\n(.*?)\n\}`).FindSubmatch(text)
	if block == nil {
		t.Fatalf("there is no table %s", table)
	}
	least := map[string]string{}
	for _, line := range regexp.MustCompile(`(?m)^  (\w+): '(\w+)',$`).FindAllSubmatch(block[1], -1) {
		least[string(line[1])] = string(line[2])
	}
	return least
}
