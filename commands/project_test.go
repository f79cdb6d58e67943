package commands

import (
	"testing"

	"flagledger/events"
)

func TestProjects(t *testing.T) {
	web := events.ProjectCreated{ID: "p", TenantID: "t", Name: "Web", Color: DefaultColor}
	given := []events.Fact{web}
	ref := ProjectRef{TenantID: "t", ID: "p"}
	t.Run("create", func(t *testing.T) {
		when(t, nil, CreateProject{ID: "p", TenantID: "t", Name: "Web"}).then(web)
		when(t, nil, CreateProject{ID: "p", TenantID: "t", Color: new("red")}).refused(Invalid, "name", "color")
		when(t, nil, CreateProject{ID: "p", TenantID: "t", Name: "Web", Projects: 999}).then(web)
		when(t, nil, CreateProject{ID: "p", TenantID: "t", Name: "Web", Projects: 1000}).refused(Conflict)
	})
	t.Run("update", func(t *testing.T) {
		when(t, given, UpdateProject{ProjectRef: ref, Name: new("App"), Description: new("d"), Color: new("#000000")}).
			then(events.ProjectUpdated{
				Name: &events.Change[string]{From: "Web", To: "App"}, Description: &events.Change[string]{To: "d"},
				Color: &events.Change[string]{From: DefaultColor, To: "#000000"},
			})
		when(t, given, UpdateProject{ProjectRef: ref, Name: new("Web")}).then()
		when(t, given, UpdateProject{ProjectRef: ref, Name: new(""), Color: new("")}).refused(Invalid, "name", "color")
	})
	t.Run("delete", func(t *testing.T) {
		when(t, given, DeleteProject{ProjectRef: ref}).then(events.ProjectDeleted{})
		when(t, given, DeleteProject{ProjectRef: ref, FlagCount: 1}).refused(Conflict)
		when(t, append(given, events.ProjectDeleted{}), DeleteProject{ProjectRef: ref}).refused(NotFound)
	})
	t.Run("another tenant's is not found", func(t *testing.T) {
		other := ProjectRef{TenantID: "u", ID: "p"}
		when(t, given, UpdateProject{ProjectRef: other, Name: new("mine")}).refused(NotFound)
		when(t, given, DeleteProject{ProjectRef: other}).refused(NotFound)
	})
}
