package http_test

import (
	"testing"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
)

func TestOwnersOfFlags(t *testing.T) {
	nodetest.BothEngines(t, func(t *testing.T) {
		nodetest.Cases{
			"reads, the history, versions and differences show the owner": testOwnerIsShown,
			"lists filter by the owner, also at a time":                   testOwnerFilter,
			"an owner must be a member":                                   testOwnerMustBeMember,
			"an owner is null while they are no member":                   testFormerOwner,
			"a revert restores the owner": func(_ *testing.T, me *nodetest.Client) {
				me.CreateFlag("k", map[string]any{"owner": me.UserID})
				me.Call("PATCH", nodetest.FlagPath("k"), `{"owner":null}`).Want(200).Shows(map[string]any{"owner": nil})
				me.Call("POST", nodetest.FlagPath("k", "/revert"), `{"version":1}`).Want(200).
					Shows(map[string]any{"owner": me.UserID})
				me.Call("DELETE", nodetest.FlagPath("k"), nil).Want(204)
				me.Call("POST", nodetest.FlagPath("k", "/revert"), `{"version":1}`).Want(200).
					Shows(map[string]any{"owner": me.UserID})
			},
		}.Run(t)
	})
}

func testOwnerIsShown(t *testing.T, me *nodetest.Client) {
	dev := me.Join(events.DeveloperRole)
	created := me.Call("POST", "/api/v1/flags", map[string]any{"key": "k", "type": "boolean", "owner": me.UserID}).Want(201)
	created.Shows(map[string]any{"owner": me.UserID})
	shownAs(me, t, created)
	patch := func(owner any) *nodetest.Answer {
		return me.Call("PATCH", nodetest.FlagPath("k"), map[string]any{"owner": owner}).Want(200)
	}
	changed := patch(dev.UserID).Shows(map[string]any{"owner": dev.UserID, "version": 2})
	shownAs(me, t, changed)
	patch(dev.UserID).Shows(map[string]any{"version": 2})
	me.Call("PATCH", nodetest.FlagPath("k"), `{"name":"other"}`).Want(200).Shows(map[string]any{"owner": dev.UserID})
	shownAs(me, t, patch(nil).Shows(map[string]any{"owner": nil, "version": 4}))

	history := me.Call("GET", nodetest.FlagPath("k", "/history"), nil).Want(200).List()
	for i, want := range map[int]any{
		0: map[string]any{"from": dev.UserID, "to": nil},
		2: map[string]any{"from": me.UserID, "to": dev.UserID},
		3: map[string]any{"from": nil, "to": me.UserID},
	} {
		nodetest.Same(t, "an entry of the history", history[i]["changes"].(map[string]any)["owner"], want)
	}
	audit := me.Call("GET", "/api/v1/audit?resourceType=flag&limit=1", nil).Want(200).List()
	nodetest.Same(t, "the audit trail", audit[0]["changes"].(map[string]any)["owner"],
		map[string]any{"from": dev.UserID, "to": nil})
	for version, want := range map[string]any{"1": me.UserID, "3": dev.UserID, "4": nil} {
		nodetest.Same(t, "version "+version,
			me.Call("GET", nodetest.FlagPath("k", "/versions/", version), nil).Want(200).
				Object()["flag"].(map[string]any)["owner"], want)
		me.Call("GET", nodetest.FlagPath("k", "?version="+version), nil).Want(200).Shows(map[string]any{"owner": want})
	}
	nodetest.Same(t, "the difference",
		me.Call("GET", nodetest.FlagPath("k", "/diff?from=1&to=2"), nil).Want(200).Object()["changes"],
		[]any{map[string]any{"field": "owner", "environment": nil, "from": me.UserID, "to": dev.UserID}})
}

func testOwnerFilter(t *testing.T, me *nodetest.Client) {
	dev := me.Join(events.DeveloperRole)
	me.CreateFlag("mine", map[string]any{"owner": me.UserID})
	me.CreateFlag("theirs", map[string]any{"owner": dev.UserID})
	me.CreateFlag("without", nil)
	then := "&" + atNow()
	me.Call("PATCH", nodetest.FlagPath("mine"), map[string]any{"owner": dev.UserID}).Want(200)
	same := func(who *nodetest.Client, query string, want ...any) {
		t.Helper()
		nodetest.Same(t, "flags with "+query, who.FlagKeys(query), append([]any{}, want...))
	}
	same(me, "?owner=me")
	same(me, "?owner=me"+then, "mine")
	same(dev, "?owner=me", "mine", "theirs")
	same(dev, "?owner=me"+then, "theirs")
	same(me, "?owner="+dev.UserID+"&q=th", "theirs")
	same(me, "?owner=nobody")
	machine := me.Machine("flags:read")
	machine.Call("GET", "/api/v1/flags?owner=me", nil).Refused(422, "owner")
	same(machine, "?owner="+dev.UserID, "mine", "theirs")
}

func testOwnerMustBeMember(_ *testing.T, me *nodetest.Client) {
	stranger := me.Service.SignUp(nodetest.Address())
	me.CreateFlag("k", map[string]any{"owner": me.UserID})
	for _, owner := range []any{stranger.UserID, "nobody", ""} {
		me.Call("PATCH", nodetest.FlagPath("k"), map[string]any{"owner": owner, "name": ""}).Refused(422, "name", "owner")
		me.Call("POST", "/api/v1/flags", map[string]any{"key": "l", "type": "boolean", "owner": owner}).
			Refused(422, "owner")
	}
	me.Call("GET", nodetest.FlagPath("k"), nil).Want(200).Shows(map[string]any{"owner": me.UserID, "version": 1})
}

func testFormerOwner(t *testing.T, me *nodetest.Client) {
	dev := me.Join(events.DeveloperRole)
	me.CreateFlag("k", map[string]any{"owner": dev.UserID})
	then := atNow()
	me.Call("DELETE", usersPath(me, dev.UserID), nil).Want(204)
	left := atNow()
	shows := func(query string, want any) {
		t.Helper()
		me.Call("GET", nodetest.FlagPath("k", query), nil).Want(200).Shows(map[string]any{"owner": want})
		nodetest.Same(t, "the owner in a list"+query,
			me.Call("GET", "/api/v1/flags"+query, nil).Want(200).List()[0]["owner"], want)
	}
	shows("", nil)
	shows("?"+then, dev.UserID)
	shows("?"+left, nil)
	shownAs(me, t, me.Call("PATCH", nodetest.FlagPath("k"), `{"name":"other"}`).Want(200).Shows(map[string]any{"owner": nil}))
	me.Call("PATCH", nodetest.FlagPath("k"), map[string]any{"owner": dev.UserID}).Refused(422, "owner")
	nodetest.Same(t, "flags to hand over", me.FlagKeys("?owner="+dev.UserID), []any{"k"})
	nodetest.Same(t, "version 1", me.Call("GET", nodetest.FlagPath("k", "/versions/1"), nil).Want(200).
		Object()["flag"].(map[string]any)["owner"], dev.UserID)
}
