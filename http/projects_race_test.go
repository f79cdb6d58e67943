package http_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands"
	"flagledger/commands/writer"
	"flagledger/events"
)

// A project may be deleted while a flag is created in it. The flag then leaves it.
func TestAFlagOfADeletedProject(t *testing.T) { nodetest.BothEngines(t, testAFlagOfADeletedProject) }

func testAFlagOfADeletedProject(t *testing.T) {
	by := writer.By{Actor: events.Actor{Kind: events.UserActor, ID: "u"}}
	beside := func(me *nodetest.Client) *writer.Writer {
		return writer.NewWriter(me.Service.Store(), writer.NoWait, writer.NoQuotas{}, time.Now)
	}
	leaves := func(t *testing.T, me *nodetest.Client, key, project string) {
		t.Helper()
		me.Service.Eventually("the flag is in no project", func() bool {
			a := me.Call("GET", nodetest.FlagPath(key), nil)
			return a.Status == 200 && a.Object()["projectId"] == nil
		})
		var last map[string]any
		me.Service.Eventually("the history shows it",
			func() bool { last = me.History(key, "")[0]; return last["actorType"] == "system" })
		nodetest.Same(t, "what happened", []any{last["action"], last["userId"]}, []any{"updated", "flagledger"})
		nodetest.Same(t, "what changed", last["changes"],
			map[string]any{"projectId": map[string]any{"from": project, "to": nil}})
	}
	nodetest.Cases{
		"that was created before the deletion, and not seen by it": func(t *testing.T, me *nodetest.Client) {
			project, path := me.CreateProject("p")
			me.CreateFlag("k", map[string]any{"projectId": project})
			_, _, err := writer.Do(t.Context(), beside(me), by,
				commands.DeleteProject{ProjectRef: commands.ProjectRef{TenantID: me.Tenant, ID: project}})
			if err != nil {
				t.Fatal(err)
			}
			leaves(t, me, "k", project)
			me.Call("GET", path, nil).Refused(404)
		},
		"that was created after the deletion": func(t *testing.T, me *nodetest.Client) {
			project, path := me.CreateProject("p")
			me.Call("DELETE", path, nil).Want(204)
			create := commands.CreateFlag{
				TenantID:  me.Tenant,
				Key:       "k",
				ID:        commands.NewID(),
				Type:      events.BooleanFlag,
				ProjectID: project,
				Salt:      "s",
			}
			if _, _, err := writer.Do(t.Context(), beside(me), by, create); err != nil {
				t.Fatal(err)
			}
			leaves(t, me, "k", project)
		},
		"that moved into it after the deletion": func(t *testing.T, me *nodetest.Client) {
			project, path := me.CreateProject("p")
			me.CreateFlag("k", nil)
			me.Call("DELETE", path, nil).Want(204)
			move := commands.UpdateFlag{FlagRef: commands.FlagRef{TenantID: me.Tenant, Key: "k"}, MoveTo: &project}
			if _, _, err := writer.Do(t.Context(), beside(me), by, move); err != nil {
				t.Fatal(err)
			}
			leaves(t, me, "k", project)
		},
		"whichever came first": func(t *testing.T, me *nodetest.Client) {
			for i := range 5 {
				project, path := me.CreateProject("p")
				key := fmt.Sprint("k", i)
				var created, deleted *nodetest.Answer
				var both sync.WaitGroup
				both.Go(func() {
					created = me.Call("POST", "/api/v1/flags", map[string]any{"key": key, "type": "boolean", "projectId": project})
				})
				both.Go(func() { deleted = me.Call("DELETE", path, nil) })
				both.Wait()
				switch {
				case created.Status == 201 && deleted.Status == 204:
					leaves(t, me, key, project)
				case created.Status == 201:
					deleted.Refused(409)
					me.Call("GET", nodetest.FlagPath(key), nil).Want(200).Shows(map[string]any{"projectId": project})
				default:
					created.Refused(422, "projectId")
					deleted.Want(204)
				}
			}
		},
	}.Run(t)
}
