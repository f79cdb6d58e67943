package http_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
)

// fieldsCase is a kind of resource, with a value for each field that its *Updated fact can change.
type fieldsCase struct {
	updated  events.Fact
	path     string
	id       string         // the member of a response that paths have
	required map[string]any // what creates one
	values   map[string]any
}

// Each field that a fact can change is taken when a resource is created or changed, and shown by each read.
func TestEachFieldIsTakenAndShown(t *testing.T) {
	t.Parallel()
	me := nodetest.New(t).SignUp("me@example.com")
	project, _ := me.CreateProject("p")
	link := map[string]any{"title": "t", "url": "https://example.com"}
	for _, c := range []fieldsCase{
		{
			events.ProjectUpdated{}, "/api/v1/projects", "id", map[string]any{"name": "n"},
			map[string]any{"name": "other", "description": "d", "color": "#112233"},
		},
		{
			events.FlagUpdated{}, "/api/v1/flags", "key", map[string]any{"type": "string", "defaultValue": "v"},
			map[string]any{
				"name": "other", "defaultValue": "w", "description": "d", "tags": []string{"x"}, "projectId": project,
				"permanent": true, "clientSide": true, "owner": me.UserID, "links": []any{link},
				"offServes": "code",
			},
		},
	} {
		for i := range reflect.TypeOf(c.updated).NumField() {
			field, _, _ := strings.Cut(reflect.TypeOf(c.updated).Field(i).Tag.Get("json"), ",")
			if value, given := c.values[field]; given {
				c.check(me, field, value)
			} else {
				t.Errorf("%T has a field %s: add a value for it here", c.updated, field)
			}
		}
	}
}

func (c fieldsCase) check(me *nodetest.Client, field string, value any) {
	t := me.Service.T
	want := map[string]any{field: value}
	create := func(with map[string]any) (path string, created *nodetest.Answer) {
		body := maps.Clone(c.required)
		maps.Copy(body, with)
		if c.id == "key" {
			body["key"] = fmt.Sprintf("%s-%d", strings.ToLower(field), len(with))
		}
		created = me.Call("POST", c.path, body).Want(201)
		return c.path + "/" + created.Object()[c.id].(string), created
	}
	shown := func(path string) {
		me.Call("GET", path, nil).Want(200).Shows(want)
		list := me.Call("GET", c.path+"?limit=100", nil).Want(200).List()
		i := slices.IndexFunc(list, func(e map[string]any) bool { return strings.HasSuffix(path, "/"+e[c.id].(string)) })
		nodetest.Same(t, field+" in the list", list[i][field], value)
	}
	path, created := create(want)
	created.Shows(want)
	shown(path)
	path, created = create(nil)
	before := created.Object()[field]
	me.Call("PATCH", path, want).Want(200).Shows(want)
	shown(path)
	if c.id == "key" {
		me.Call("POST", path+"/revert", `{"version":1}`).Want(200).Shows(map[string]any{field: before})
	}
}
