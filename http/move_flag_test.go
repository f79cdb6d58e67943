package http_test

import (
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

func TestAFlagMovesBetweenProjects(t *testing.T) {
	nodetest.Cases{
		"and is listed and found in the new one": func(t *testing.T, me *nodetest.Client) {
			from, _ := me.CreateProject("from")
			to, _ := me.CreateProject("to")
			me.CreateFlag("k", map[string]any{"projectId": from})
			me.Call("PATCH", nodetest.FlagPath("k"), map[string]any{"projectId": to}).Want(200).
				Shows(map[string]any{"projectId": to, "version": 2})
			nodetest.Same(t, "flags of the old project", me.FlagKeys("?projectId="+from), []string{})
			nodetest.Same(t, "flags of the new project", me.FlagKeys("?projectId="+to), []string{"k"})
			me.Call("GET", "/api/v1/flags/projects/"+from+"/flags/k", nil).Refused(404)
			me.Call("GET", "/api/v1/flags/projects/"+to+"/flags/k", nil).Want(200)
			nodetest.Same(t, "what changed", me.History("k", "")[0]["changes"],
				map[string]any{"projectId": map[string]any{"from": from, "to": to}})
			me.Call("PATCH", nodetest.FlagPath("k"), map[string]any{"projectId": to}).Want(200).
				Shows(map[string]any{"version": 2})
			me.Call("PATCH", nodetest.FlagPath("k"), `{"projectId":null}`).Want(200).Shows(map[string]any{"projectId": nil})
		},
		"but to none that is unknown or another's": func(_ *testing.T, me *nodetest.Client) {
			theirs, _ := me.Service.SignUp("other-" + me.Tenant + "@example.com").CreateProject("theirs")
			me.CreateFlag("k", nil)
			for _, id := range []string{"none", "", theirs} {
				me.Call("PATCH", nodetest.FlagPath("k"), map[string]any{"projectId": id}).Refused(422, "projectId")
			}
		},
	}.Run(t)
}
