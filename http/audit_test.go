package http_test

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

const auditPath, exportPath = "/api/v1/audit", "/api/v1/audit/export"

// recordedPattern matches a recorded time: UTC with microseconds and Z.
var recordedPattern = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$`)

// trail returns all entries of a tenant's trail that match a query, page by page, oldest first.
func trail(c *nodetest.Client, query string) []map[string]any {
	c.Service.T.Helper()
	list := []map[string]any{}
	for next := auditPath + query; next != ""; {
		page := c.Call("GET", next, nil).Want(200)
		list, next = append(list, page.List()...), linked(page)
	}
	slices.Reverse(list)
	return list
}

// linked returns the path of the next page, or "".
func linked(page *nodetest.Answer) string {
	if match := nextLink.FindStringSubmatch(nextPage(page)); match != nil {
		return match[1]
	}
	return ""
}

func TestAuditEntrySaysWhoDidIt(t *testing.T) {
	nodetest.Cases{
		"an entry tells who did it, in which request and why": func(t *testing.T, me *nodetest.Client) {
			machine := me.Machine("flags:write")
			a := machine.Call("POST", "/api/v1/flags", `{"key":"k","type":"boolean"}`, "X-Change-Reason", "why <not>").Want(201)
			created := a.Object()
			entry := me.Call("GET", auditPath+"?limit=1", nil).Want(200).List()[0]
			for name, want := range map[string]any{
				"action": "flag.created", "userId": machine.UserID, "userName": "Machine", "actorType": "client", "reason": "why <not>", "requestId": a.Header.Get("X-Request-ID"), "version": 1,
			} {
				nodetest.Same(t, name, entry[name], want)
			}
			if made := created["createdAt"].(string); entry["timestamp"].(string) < strings.TrimSuffix(made, "Z") {
				t.Errorf("it was recorded at %s and made at %s", entry["timestamp"], made)
			}
			nodetest.Same(t, "the history's entry", me.History("k", "")[0]["id"], entry["id"])
			machine.Call("GET", auditPath, nil).Refused(403)
		},
	}.Run(t)
}

func TestNamesInTheAuditTrail(t *testing.T) {
	nodetest.Cases{
		"people are found by the name that the entry shows": func(t *testing.T, me *nodetest.Client) {
			users := "/api/v1/tenants/" + me.Tenant + "/users"
			email, waiting := nodetest.Address(), nodetest.Address()
			invited := me.Call("POST", users, map[string]string{"email": email, "role": "viewer"}).Want(201).Object()["userId"]
			pending := me.Call("POST", users, map[string]string{"email": waiting, "role": "viewer"}).Want(201).Object()["userId"]
			joined := me.Service.SignUp(email)
			me.Call("DELETE", users+"/"+joined.UserID, nil).Want(204)
			stranger := me.Service.SignUp(nodetest.Address())
			for search, want := range map[string][]any{
				strings.ToUpper(email): {invited, joined.UserID, joined.UserID}, waiting: {pending}, stranger.Email: {},
			} {
				query := "?q=" + url.QueryEscape(search)
				for _, list := range [][]map[string]any{trail(me, query), exported(me, query)} {
					found := []any{}
					for _, e := range list {
						found = append(found, e["resource"].(map[string]any)["id"])
					}
					nodetest.Same(t, "found by "+search, found, want)
				}
			}
		},
		"a pending member is called what the list of members at that time calls them": func(t *testing.T, me *nodetest.Client) {
			users := "/api/v1/tenants/" + me.Tenant + "/users"
			invite := func(email string) string {
				return me.Call("POST", users, map[string]string{"email": email, "role": "viewer"}).Want(201).Object()["userId"].(string)
			}
			email := nodetest.Address()
			joining, withdrawn := invite(email), invite(nodetest.Address())
			then := atNow()
			joined := me.Service.SignUp(email)
			me.Call("DELETE", users+"/"+withdrawn, nil).Want(204)
			people := me.Call("GET", users+"?"+then, nil).Want(200).List()
			for id, want := range map[string][]any{joining: {email, ""}, withdrawn: {"", "withdrawn invitation"}} {
				member := people[slices.Index(nodetest.Column(people, "userId"), any(id))]
				nodetest.Same(t, "the member", []any{member["email"], member["displayName"]}, want)
				name := want[0]
				if name == "" {
					name = want[1]
				}
				for _, list := range [][]map[string]any{trail(me, "?resourceId="+id), exported(me, "?resourceId="+id)} {
					for _, e := range list {
						nodetest.Same(t, e["action"].(string), e["resource"], map[string]any{"type": "member", "id": id, "name": name})
					}
				}
			}
			erase(t, me.Service, joined.UserID)
			for _, e := range trail(me, "?resourceId="+joining) {
				nodetest.Same(t, "who joined and was erased", e["resource"].(map[string]any)["name"], "erased user")
			}
		},
	}.Run(t)
}

func TestWhoMayReadTheAuditTrail(t *testing.T) {
	nodetest.Cases{
		"whoever is no member reads nothing": func(_ *testing.T, me *nodetest.Client) {
			stranger := withToken(me, me.Service.SignUp(nodetest.Address()).Token)
			for _, path := range []string{auditPath, exportPath} {
				stranger.Call("GET", path, nil, "X-Tenant-ID", me.Tenant).Refused(403)
				me.Service.Anonymous().Call("GET", path, nil).Refused(401)
				me.Join("viewer").Call("GET", path, nil).Want(200)
			}
			me.Call("GET", "/api/v1/admin/audit", nil).Refused(403)
		},
	}.Run(t)
}
