package http_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
	"flagledger/events/export"
)

const factsPath = "/api/v1/audit/facts"

// hashesIn returns the hashes of the facts in a file of facts.
func hashesIn(t *testing.T, file []byte) (header export.Header, list []tlog.Hash) {
	t.Helper()
	r, err := export.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return r.Header, list
		}
		if err != nil {
			t.Fatal(err)
		}
		if e.Event, err = events.Decode(e.Stored); err != nil {
			t.Fatal(err)
		}
		leaf, err := events.LeafHash(e)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, leaf)
	}
}

func TestFactsOfATenant(t *testing.T) {
	fill := func(me *nodetest.Client) (project string) {
		project, path := me.CreateProject("p")
		me.Call("POST", "/api/v1/tenants/"+me.Tenant+"/environments", `{"environment":"staging"}`).Want(201)
		me.OAuthClient("c", "flags:read")
		me.CreateEnabledFlag("k", map[string]any{"projectId": project})
		me.NewTenant("other").CreateFlag("k", nil)
		for i := range 40 { // more facts than one read returns
			me.Call("PATCH", path, fmt.Sprintf(`{"name":"p%d"}`, i)).Want(200)
			me.Call("PATCH", nodetest.FlagPath("k"), fmt.Sprintf(`{"name":"k%d","defaultValue":%v}`, i, i%2 == 0)).Want(200)
		}
		me.Call("DELETE", nodetest.FlagPath("k"), nil).Want(204)
		me.Call("DELETE", path, nil).Want(204)
		return project
	}
	nodetest.Cases{
		"the file has all facts of the tenant as they are stored, and they lead to a checkpoint": func(t *testing.T, me *nodetest.Client) {
			project := fill(me)
			want := checkpoint(me)
			a := me.Call("GET", factsPath, nil).Want(200)
			header, got := hashesIn(t, a.Body)
			all, _ := leaves(me, project)
			nodetest.Same(t, "the hashes", got, all)
			nodetest.Same(t, "the root", rootOf(got[:want.Size]), want.Root)
			nodetest.Same(t, "the tenant", header.Tenant, me.Tenant)
			nodetest.Same(t, "the key", header.Key+"\n", string(me.Call("GET", "/api/v1/audit/key", nil).Want(200).Body))
			nodetest.Same(t, "the media type", a.Header.Get("Content-Type"), "application/x-ndjson")
		},
		"one that was broken off goes on, wherever": func(t *testing.T, me *nodetest.Client) {
			fill(me)
			whole := me.Call("GET", factsPath, nil).Want(200).Body
			lines := bytes.SplitAfter(bytes.TrimSuffix(whole, []byte("\n")), []byte("\n"))
			facts := len(lines) - 2
			for _, have := range []int{1, 63, 64, 65, facts} {
				rest := me.Call("GET", fmt.Sprintf("%s?after=%d", factsPath, have-1), nil).Want(200).Body
				if joined := append(
					bytes.Join(lines[:1+have], nil),
					rest...); !bytes.Equal(bytes.TrimSpace(joined), bytes.TrimSpace(whole)) {
					t.Errorf("after %d of %d facts it goes on with %.200s", have, facts, rest)
				}
			}
			me.Call("GET", fmt.Sprintf("%s?after=%d", factsPath, facts), nil).Refused(422, "after")
			me.Call("GET", fmt.Sprintf("%s?after=%d", factsPath, math.MaxInt64), nil).Refused(422, "after")
		},
		"only admins have it": func(_ *testing.T, me *nodetest.Client) {
			me.Call("GET", factsPath+"?after=-2", nil).Refused(422, "after")
			me.Join("developer").Call("GET", factsPath, nil).Refused(403)
			me.Machine("flags:read").Call("GET", factsPath, nil).Refused(403)
		},
	}.Run(t)
}
