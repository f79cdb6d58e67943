package http_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"flagledger/cmd/flagledger/nodetest"
)

func TestProjects(t *testing.T) { nodetest.BothEngines(t, testProjects) }

func testProjects(t *testing.T) {
	nodetest.Cases{
		"a project is created with its defaults, and reads show the same": func(t *testing.T, me *nodetest.Client) {
			a := me.Call("POST", "/api/v1/projects", `{"name":"Checkout"}`).Want(201)
			body := a.Object()
			nodetest.Members(t, "a project", body, "id", "name", "description", "color", "flagCount", "createdAt", "updatedAt")
			a.Shows(map[string]any{"name": "Checkout", "description": "", "color": "#6b7280", "flagCount": 0})
			checkTimes(t, body)
			path := "/api/v1/projects/" + body["id"].(string)
			nodetest.Same(t, "Location", a.Header.Get("Location"), path)
			nodetest.Same(t, "the project", me.Call("GET", path, nil).Want(200).Object(), body)
			nodetest.Same(t, "the list", me.Call("GET", "/api/v1/projects", nil).Want(200).List(), []any{body})
			me.Call("POST", "/api/v1/projects", `{"name":"Kasse <&>","description":"für alle","color":"#00FFaa"}`).Want(201).
				Shows(map[string]any{"name": "Kasse <&>", "description": "für alle", "color": "#00FFaa"})
		},
		"names need not be unique": func(_ *testing.T, me *nodetest.Client) {
			me.CreateProject("twice")
			me.CreateProject("twice")
		},
		"all that is wrong with a project is named at once": func(t *testing.T, me *nodetest.Client) {
			_, path := me.CreateProject("p")
			long := map[string]any{"name": strings.Repeat("é", 201), "description": strings.Repeat("é", 2001), "color": "red"}
			for _, call := range [][2]string{{"POST", "/api/v1/projects"}, {"PATCH", path}} {
				me.Call(call[0], call[1], long).Refused(422, "name", "description", "color")
				me.Call(call[0], call[1], map[string]any{"name": "", "color": "#12345"}).Refused(422, "name", "color")
				me.Call(call[0], call[1], map[string]any{"name": 5, "color": []int{}, "flagCount": 1}).
					Refused(422, "name", "color", "flagCount")
				me.Call(call[0], call[1], `{"name":null,"color":null}`).Refused(422, "name", "color")
				me.Call(call[0], call[1], map[string]any{"name": "ok", "color": ""}).Refused(422, "color")
				me.Call(call[0], call[1], map[string]any{"name": "ok", "color": "#6b7280 "}).Refused(422, "color")
				me.Call(call[0], call[1], map[string]any{"name": "ok", "color": "#6b728\n0"}).Refused(422, "color")
			}
			me.Call("POST", "/api/v1/projects", `{}`).Refused(422, "name")
			nodetest.Same(t, "projects", len(me.Call("GET", "/api/v1/projects", nil).Want(200).List()), 1)
			me.Call("POST", "/api/v1/projects", map[string]any{"name": strings.Repeat("é", 200), "description": strings.Repeat("é", 2000)}).
				Want(201)
		},
		"PATCH changes what is sent": func(t *testing.T, me *nodetest.Client) {
			before := me.Call("POST", "/api/v1/projects", `{"name":"old","description":"text","color":"#112233"}`).
				Want(201).
				Object()
			path := "/api/v1/projects/" + before["id"].(string)
			a := me.Call("PATCH", path, `{"name":"new"}`).Want(200)
			a.Shows(
				map[string]any{
					"id":          before["id"],
					"name":        "new",
					"description": "text",
					"color":       "#112233",
					"createdAt":   before["createdAt"],
				},
			)
			nodetest.Same(t, "Location", a.Header.Get("Location"), "")
			nodetest.Same(t, "the project", me.Call("GET", path, nil).Want(200).Object(), a.Object())
			me.Call("PATCH", path, `{"description":null,"color":"#445566"}`).
				Want(200).
				Shows(map[string]any{"name": "new", "description": "", "color": "#445566"})
			me.Call("PATCH", path, `{"description":""}`).Want(200).Shows(map[string]any{"description": ""})
			for _, nothing := range []string{`{}`, `{"name":"new","color":"#445566"}`} {
				last := me.Call("GET", path, nil).Want(200).Object()
				nodetest.Same(t, "a PATCH that changes nothing", me.Call("PATCH", path, nothing).Want(200).Object(), last)
				nodetest.Same(t, "the project after it", me.Call("GET", path, nil).Want(200).Object(), last)
			}
		},
		"flagCount counts flags that are not deleted, at once": func(t *testing.T, me *nodetest.Client) {
			id, path := me.CreateProject("p")
			count := func(want int) {
				t.Helper()
				me.Call("GET", path, nil).Want(200).Shows(map[string]any{"flagCount": want})
				nodetest.Same(t, "flagCount in the list", me.Call("GET", "/api/v1/projects", nil).Want(200).List()[0]["flagCount"],
					want)
				me.Call("PATCH", path, `{}`).Want(200).Shows(map[string]any{"flagCount": want})
			}
			count(0)
			me.CreateFlag("a", map[string]any{"projectId": id})
			count(1)
			me.CreateFlag("b", map[string]any{"projectId": id})
			me.CreateFlag("elsewhere", nil)
			count(2)
			me.Call("PATCH", nodetest.FlagPath("b"), `{"status":"archived"}`).Want(200)
			me.Call("POST", nodetest.FlagPath("b", "/enable"), nil).Want(200)
			count(2)
			me.Call("DELETE", nodetest.FlagPath("a"), nil).Want(204)
			count(1)
			me.CreateFlag("a", nil)
			count(1)
		},
		"a project with flags cannot be deleted, one without can": func(t *testing.T, me *nodetest.Client) {
			id, path := me.CreateProject("p")
			me.CreateFlag("a", map[string]any{"projectId": id})
			me.Call("DELETE", path, nil).Refused(409)
			me.Call("GET", path, nil).Want(200)
			me.Call("DELETE", nodetest.FlagPath("a"), nil).Want(204)
			gone := me.Call("DELETE", path, nil).Want(204)
			nodetest.Same(t, "the body of 204", string(gone.Body), "")
			me.Call("GET", path, nil).Refused(404)
			me.Call("PATCH", path, `{"name":"x"}`).Refused(404)
			me.Call("DELETE", path, nil).Refused(404)
			nodetest.Same(t, "the list", string(me.Call("GET", "/api/v1/projects", nil).Want(200).Body), "[]")
			me.Call("POST", "/api/v1/flags", map[string]any{"key": "b", "type": "boolean", "projectId": id}).
				Refused(422, "projectId")
		},
		"projects are listed in the order of creation, page by page": func(t *testing.T, me *nodetest.Client) {
			var want []any
			for _, name := range []string{"c", "a", "b", "a", "d"} {
				id, _ := me.CreateProject(name)
				want = append(want, id)
				nodetest.Same(t, "projects right after a creation",
					nodetest.Column(me.Call("GET", "/api/v1/projects", nil).Want(200).List(), "id"), want)
			}
			checkPages(t, me, "/api/v1/projects", "id", want)
		},
		"another tenant's project is 404 just as a missing one": func(t *testing.T, me *nodetest.Client) {
			id, path := me.CreateProject("mine")
			other := me.NewTenant("other")
			for _, method := range []string{"GET", "PATCH", "DELETE"} {
				var body any
				if method == "PATCH" {
					body = `{"name":"stolen"}`
				}
				missing := uuid.NewString()
				foreign := other.Call(method, path, body).Refused(404)
				sameBut(t, foreign, id, other.Call(method, "/api/v1/projects/"+missing, body).Refused(404), missing)
			}
			me.Call("GET", path, nil).Want(200).Shows(map[string]any{"name": "mine"})
			nodetest.Same(t, "the other's list", string(other.Call("GET", "/api/v1/projects", nil).Want(200).Body), "[]")
			missing := uuid.NewString()
			flag := func(project string) *nodetest.Answer {
				return other.Call("POST", "/api/v1/flags", map[string]any{"key": "f", "type": "boolean", "projectId": project}).
					Refused(422, "projectId")
			}
			sameBut(t, flag(id), id, flag(missing), missing)
			nodetest.Same(t, "flags filtered by another's project",
				string(other.Call("GET", "/api/v1/flags?projectId="+id, nil).Want(200).Body), "[]")
		},
	}.Run(t)
}

// sameBut checks that two problems differ only in the request's id and the requested thing.
func sameBut(t *testing.T, a *nodetest.Answer, asked string, b *nodetest.Answer, askedToo string) {
	t.Helper()
	x, y := *a, *b
	x.Body = []byte(strings.ReplaceAll(string(a.Body), asked, "ASKED"))
	y.Body = []byte(strings.ReplaceAll(string(b.Body), askedToo, "ASKED"))
	sameProblem(t, &x, &y)
}
