package http_test

import (
	"testing"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
)

// During writes of other tests some read model always lags, so the test has its own node.
func TestStatusOfReadModels(t *testing.T) { nodetest.BothEngines(t, testStatusOfReadModels) }

func testStatusOfReadModels(t *testing.T) {
	t.Parallel()
	s := nodetest.Start(t, nodetest.Database(t),
		settings.Config{Environment: "development", SuperUsers: []string{"root@example.com"}}, nodetest.Log(t))
	root := s.SignUp("root@example.com")
	s.Eventually("all is taken in", func() bool {
		status := root.Call("GET", "/api/v1/admin/status", nil).Want(200).Object()
		models := status["readModels"].([]any)
		for _, m := range models {
			m := m.(map[string]any)
			if m["built"] != true || m["lag"] != 0.0 || m["rebuilt"] != nil {
				return false
			}
		}
		store := status["eventStore"].(map[string]any)
		return len(models) > 5 && store["reachable"] == true && store["position"].(float64) > 0
	})
	s.SignUp(nodetest.Address()).Call("GET", "/api/v1/admin/status", nil).Refused(403)
}

func TestThePlatformIsSeenByThoseWhoRunIt(t *testing.T) {
	nodetest.BothEngines(t, testThePlatformIsSeenByThoseWhoRunIt)
}

func testThePlatformIsSeenByThoseWhoRunIt(t *testing.T) {
	platformCases{
		"everybody may ask for their role": func(t *testing.T, root *nodetest.Client) {
			nodetest.Same(t, "root", root.Call("GET", "/api/v1/admin/role", nil).Want(200).Object()["role"], any("super_user"))
			nodetest.Same(t, "another",
				root.Service.SignUp(nodetest.Address()).Call("GET", "/api/v1/admin/role", nil).Want(200).Object()["role"], any(nil))
		},
		"people and tenants are found by a part of what they are called": func(_ *testing.T, root *nodetest.Client) {
			email := nodetest.Address()
			someone := root.Service.SignUp(email)
			tenant := someone.Call("GET", "/api/v1/tenants", nil).Want(200).List()[0]
			root.Service.Eventually("the person is found", func() bool {
				found := root.Call("GET", usersOfPlatform+"?q="+email[:12], nil).Want(200).List()
				return len(found) == 1 && found[0]["email"] == email
			})
			someone.Call("PATCH", "/api/v1/tenants/"+tenant["id"].(string), map[string]string{"name": "Needle & Thread"}).
				Want(200)
			root.Service.Eventually("the tenant is found", func() bool {
				found := root.Call("GET", "/api/v1/admin/tenants?q=needle", nil).Want(200).List()
				return len(found) == 1 && found[0]["id"] == tenant["id"]
			})
		},
	}.run(t)
}
