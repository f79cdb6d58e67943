package main

import (
	"strings"
	"testing"

	"github.com/google/uuid"
)

func (c *client) createProject(name string) (id, path string) {
	c.s.t.Helper()
	id = c.call("POST", "/api/v1/projects", map[string]string{"name": name}).want(201).object()["id"].(string)
	return id, "/api/v1/projects/" + id
}

func TestProjects(t *testing.T) {
	cases{
		"a project is created with its defaults, and reads show the same": func(t *testing.T, me *client) {
			a := me.call("POST", "/api/v1/projects", `{"name":"Checkout"}`).want(201)
			body := a.object()
			members(t, "a project", body, "id", "name", "description", "color", "flagCount", "createdAt", "updatedAt")
			a.shows(map[string]any{"name": "Checkout", "description": "", "color": "#6b7280", "flagCount": 0})
			checkTimes(t, body)
			path := "/api/v1/projects/" + body["id"].(string)
			same(t, "Location", a.header.Get("Location"), path)
			same(t, "the project", me.call("GET", path, nil).want(200).object(), body)
			same(t, "the list", me.call("GET", "/api/v1/projects", nil).want(200).list(), []any{body})
			me.call("POST", "/api/v1/projects", `{"name":"Kasse <&>","description":"für alle","color":"#00FFaa"}`).want(201).
				shows(map[string]any{"name": "Kasse <&>", "description": "für alle", "color": "#00FFaa"})
		},
		"names need not be unique": func(_ *testing.T, me *client) {
			me.createProject("twice")
			me.createProject("twice")
		},
		"all that is wrong with a project is named at once": func(t *testing.T, me *client) {
			_, path := me.createProject("p")
			long := map[string]any{"name": strings.Repeat("é", 201), "description": strings.Repeat("é", 2001), "color": "red"}
			for _, call := range [][2]string{{"POST", "/api/v1/projects"}, {"PATCH", path}} {
				me.call(call[0], call[1], long).refused(422, "name", "description", "color")
				me.call(call[0], call[1], map[string]any{"name": "", "color": "#12345"}).refused(422, "name", "color")
				me.call(call[0], call[1], map[string]any{"name": 5, "color": []int{}, "flagCount": 1}).refused(422, "name", "color", "flagCount")
				me.call(call[0], call[1], `{"name":null,"color":null}`).refused(422, "name", "color")
				me.call(call[0], call[1], map[string]any{"name": "ok", "color": ""}).refused(422, "color")
				me.call(call[0], call[1], map[string]any{"name": "ok", "color": "#6b7280 "}).refused(422, "color")
				me.call(call[0], call[1], map[string]any{"name": "ok", "color": "#6b728\n0"}).refused(422, "color")
			}
			me.call("POST", "/api/v1/projects", `{}`).refused(422, "name")
			same(t, "projects", len(me.call("GET", "/api/v1/projects", nil).want(200).list()), 1)
			me.call("POST", "/api/v1/projects", map[string]any{"name": strings.Repeat("é", 200), "description": strings.Repeat("é", 2000)}).want(201)
		},
		"PATCH changes what is sent": func(t *testing.T, me *client) {
			before := me.call("POST", "/api/v1/projects", `{"name":"old","description":"text","color":"#112233"}`).want(201).object()
			path := "/api/v1/projects/" + before["id"].(string)
			a := me.call("PATCH", path, `{"name":"new"}`).want(200)
			a.shows(map[string]any{"id": before["id"], "name": "new", "description": "text", "color": "#112233", "createdAt": before["createdAt"]})
			same(t, "Location", a.header.Get("Location"), "")
			same(t, "the project", me.call("GET", path, nil).want(200).object(), a.object())
			me.call("PATCH", path, `{"description":null,"color":"#445566"}`).want(200).shows(map[string]any{"name": "new", "description": "", "color": "#445566"})
			me.call("PATCH", path, `{"description":""}`).want(200).shows(map[string]any{"description": ""})
			for _, nothing := range []string{`{}`, `{"name":"new","color":"#445566"}`} {
				last := me.call("GET", path, nil).want(200).object()
				same(t, "a PATCH that changes nothing", me.call("PATCH", path, nothing).want(200).object(), last)
				same(t, "the project after it", me.call("GET", path, nil).want(200).object(), last)
			}
		},
		"flagCount counts flags that are not deleted, at once": func(t *testing.T, me *client) {
			id, path := me.createProject("p")
			count := func(want int) {
				t.Helper()
				me.call("GET", path, nil).want(200).shows(map[string]any{"flagCount": want})
				same(t, "flagCount in the list", me.call("GET", "/api/v1/projects", nil).want(200).list()[0]["flagCount"], want)
				me.call("PATCH", path, `{}`).want(200).shows(map[string]any{"flagCount": want})
			}
			count(0)
			me.createFlag("a", map[string]any{"projectId": id})
			count(1)
			me.createFlag("b", map[string]any{"projectId": id})
			me.createFlag("elsewhere", nil)
			count(2)
			me.call("PATCH", flagPath("b"), `{"status":"archived"}`).want(200)
			me.call("POST", flagPath("b", "/enable"), nil).want(200)
			count(2)
			me.call("DELETE", flagPath("a"), nil).want(204)
			count(1)
			me.createFlag("a", nil)
			count(1)
		},
		"a project with flags cannot be deleted, one without can": func(t *testing.T, me *client) {
			id, path := me.createProject("p")
			me.createFlag("a", map[string]any{"projectId": id})
			me.call("DELETE", path, nil).refused(409)
			me.call("GET", path, nil).want(200)
			me.call("DELETE", flagPath("a"), nil).want(204)
			gone := me.call("DELETE", path, nil).want(204)
			same(t, "the body of 204", string(gone.body), "")
			me.call("GET", path, nil).refused(404)
			me.call("PATCH", path, `{"name":"x"}`).refused(404)
			me.call("DELETE", path, nil).refused(404)
			same(t, "the list", string(me.call("GET", "/api/v1/projects", nil).want(200).body), "[]")
			me.call("POST", "/api/v1/flags", map[string]any{"key": "b", "type": "boolean", "projectId": id}).refused(422, "projectId")
		},
		"projects are listed in the order of creation, page by page": func(t *testing.T, me *client) {
			var want []any
			for _, name := range []string{"c", "a", "b", "a", "d"} {
				id, _ := me.createProject(name)
				want = append(want, id)
				same(t, "projects right after a creation", column(me.call("GET", "/api/v1/projects", nil).want(200).list(), "id"), want)
			}
			checkPages(t, me, "/api/v1/projects", "id", want)
		},
		"another tenant's project is 404 just as a missing one": func(t *testing.T, me *client) {
			id, path := me.createProject("mine")
			other := me.newTenant("other")
			for _, method := range []string{"GET", "PATCH", "DELETE"} {
				var body any
				if method == "PATCH" {
					body = `{"name":"stolen"}`
				}
				missing := uuid.NewString()
				foreign := other.call(method, path, body).refused(404)
				sameBut(t, foreign, id, other.call(method, "/api/v1/projects/"+missing, body).refused(404), missing)
			}
			me.call("GET", path, nil).want(200).shows(map[string]any{"name": "mine"})
			same(t, "the other's list", string(other.call("GET", "/api/v1/projects", nil).want(200).body), "[]")
			missing := uuid.NewString()
			flag := func(project string) *answer {
				return other.call("POST", "/api/v1/flags", map[string]any{"key": "f", "type": "boolean", "projectId": project}).refused(422, "projectId")
			}
			sameBut(t, flag(id), id, flag(missing), missing)
			same(t, "flags filtered by another's project", string(other.call("GET", "/api/v1/flags?projectId="+id, nil).want(200).body), "[]")
		},
	}.run(t)
}

// sameBut checks that two problems differ in nothing but the request's id and what was asked for.
func sameBut(t *testing.T, a *answer, asked string, b *answer, askedToo string) {
	t.Helper()
	x, y := *a, *b
	x.body = []byte(strings.ReplaceAll(string(a.body), asked, "ASKED"))
	y.body = []byte(strings.ReplaceAll(string(b.body), askedToo, "ASKED"))
	sameProblem(t, &x, &y)
}
