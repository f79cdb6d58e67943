package http_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
	"flagledger/events/proof"
)

// leaves returns the hashes of the facts of a tenant and its flags and projects, in log order.
func leaves(c *nodetest.Client, projects ...string) (list []tlog.Hash, ids []string) {
	c.Service.T.Helper()
	for page, err := range c.Service.Store().Subscribe(c.Service.T.Context(), events.Position{}) {
		if err != nil {
			c.Service.T.Fatal(err)
		}
		for _, e := range page.Events {
			ours := e.Stream == events.TenantStream(c.Tenant) || strings.HasPrefix(e.Stream, events.FlagStream(c.Tenant, ""))
			for _, id := range projects {
				ours = ours || e.Stream == events.ProjectStream(id)
			}
			if !ours {
				continue
			}
			leaf, err := events.LeafHash(e)
			if err != nil {
				c.Service.T.Fatal(err)
			}
			list, ids = append(list, tlog.Hash(leaf)), append(ids, e.ID.String())
		}
		if page.Live {
			break
		}
	}
	return list, ids
}

func checkpoint(c *nodetest.Client) proof.Checkpoint {
	c.Service.T.Helper()
	key := c.Call("GET", "/api/v1/audit/key", nil).Want(200)
	signed := c.Call("GET", "/api/v1/audit/checkpoint", nil).Want(200)
	nodetest.Same(c.Service.T, "media type", signed.Header.Get("Content-Type"), "text/plain; charset=utf-8")
	p, err := proof.Open(signed.Body, string(key.Body))
	if err != nil {
		c.Service.T.Fatalf("%v\n%s", err, signed.Body)
	}
	return p
}

func rootOf(list []tlog.Hash) tlog.Hash {
	var tree proof.CompactRange
	for _, leaf := range list {
		tree.Add(leaf)
	}
	return tree.Root()
}

func hashes(t testing.TB, body []byte) (list []tlog.Hash) {
	t.Helper()
	var answer struct{ Hashes []string }
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatal(err)
	}
	for _, text := range answer.Hashes {
		hash, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(hash) != tlog.HashSize {
			t.Fatalf("%q is no hash: %v", text, err)
		}
		list = append(list, tlog.Hash(hash))
	}
	return list
}

func TestTheTrailIsProven(t *testing.T) { nodetest.BothEngines(t, testTheTrailIsProven) }

func testTheTrailIsProven(t *testing.T) {
	nodetest.Cases{
		"checkpoints and proofs are those of the facts": func(t *testing.T, me *nodetest.Client) {
			project, _ := me.CreateProject("Web")
			me.CreateEnabledFlag("k", map[string]any{"type": "boolean"})
			first := checkpoint(me)
			me.Call("DELETE", nodetest.FlagPath("k"), nil).Want(204)
			second := checkpoint(me)
			list, ids := leaves(me, project)
			for _, p := range []proof.Checkpoint{first, second} {
				if p.TenantID != me.Tenant || p.Root != rootOf(list[:p.Size]) {
					t.Errorf("the checkpoint is %+v, want the root %v", p, rootOf(list[:p.Size]))
				}
			}
			if first.Size != second.Size-1 || second.Size != int64(len(list)) {
				t.Errorf("checkpoints are of %d and %d facts, want the last of %d", first.Size, second.Size, len(list))
			}
			for i, id := range ids {
				for _, p := range []proof.Checkpoint{first, second} {
					if int64(i) >= p.Size {
						continue
					}
					a := me.Call("GET", fmt.Sprintf("/api/v1/audit/proof?event=%s&size=%d", id, p.Size), nil).Want(200)
					body := a.Object()
					nodetest.Same(t, "leafIndex", body["leafIndex"], float64(i))
					nodetest.Same(t, "treeSize", body["treeSize"], float64(p.Size))
					nodetest.Same(t, "leaf", body["leaf"], list[i].String())
					if err := tlog.CheckRecord(hashes(t, a.Body), p.Size, p.Root, int64(i), list[i]); err != nil {
						t.Errorf("fact %d in the tree of %d: %v", i, p.Size, err)
					}
				}
			}
			a := me.Call("GET", fmt.Sprintf("/api/v1/audit/consistency?from=%d", first.Size), nil).Want(200)
			nodetest.Same(t, "to", a.Object()["to"], float64(second.Size))
			if err := tlog.CheckTree(hashes(t, a.Body), second.Size, second.Root, first.Size, first.Root); err != nil {
				t.Error(err)
			}
			versions := me.Call("GET", "/api/v1/audit/proof?flag=k&version=3", nil).Want(200).Object() // its deletion
			nodetest.Same(t, "leafIndex", versions["leafIndex"], float64(len(list)-1))
		},
		"what is not there is not proven": func(_ *testing.T, me *nodetest.Client) {
			other := me.NewTenant("Other")
			other.CreateFlag("k", map[string]any{"type": "boolean"})
			_, ids := leaves(other)
			for query, fields := range map[string][]string{
				"":                                       {"event"},
				"?event=x":                               {"event"},
				"?event=" + ids[0] + "&flag=k&version=1": {"event"},
				"?flag=k":                                {"event"},
				"?version=1":                             {"event"},
				"?event=" + ids[0] + "&size=1000000":     {"size"},
			} {
				me.Call("GET", "/api/v1/audit/proof"+query, nil).Refused(422, fields...)
			}
			me.Call("GET", "/api/v1/audit/proof?event="+ids[0], nil).Refused(404)
			me.Call("GET", "/api/v1/audit/proof?flag=k&version=1", nil).Refused(404)
			other.Call("GET", "/api/v1/audit/proof?event="+ids[len(ids)-1]+"&size=1", nil).Refused(422, "size")
			me.Call("GET", "/api/v1/audit/consistency", nil).Refused(422, "from")
			me.Call("GET", "/api/v1/audit/consistency?from=1000000", nil).Refused(422, "from")
			me.Call("GET", "/api/v1/audit/consistency?from=0", nil).Refused(422, "from")
		},
		"no checkpoint is signed that contradicts an earlier one": func(_ *testing.T, me *nodetest.Client) {
			p := checkpoint(me)
			me.Service.Exec(`update keep.audit_checkpoints set root = sha256('x') where tenant_id = $1`, me.Tenant)
			me.Call("GET", "/api/v1/audit/checkpoint", nil).Refused(409)
			me.CreateFlag("k", map[string]any{"type": "boolean"})
			me.Call("GET", "/api/v1/audit/checkpoint", nil).Refused(409)
			me.Service.Exec(`update keep.audit_checkpoints set root = $2, size = size + 10 where tenant_id = $1`, me.Tenant,
				p.Root[:])
			me.Call("GET", "/api/v1/audit/checkpoint", nil).Refused(409)
		},
	}.Run(t)
}
