package http_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

// exported returns the lines of an export.
func exported(c *nodetest.Client, query string) []map[string]any {
	c.Service.T.Helper()
	list := []map[string]any{}
	a := c.Call("GET", exportPath+query, nil).Want(200)
	nodetest.Same(c.Service.T, "media type", a.Header.Get("Content-Type"), "application/x-ndjson")
	for line := range strings.Lines(string(a.Body)) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			c.Service.T.Fatalf("%v in %q", err, line)
		}
		list = append(list, entry)
	}
	return list
}

func TestAuditExport(t *testing.T) { nodetest.BothEngines(t, testAuditExport) }

func testAuditExport(t *testing.T) {
	nodetest.Cases{
		"an export goes on after a position, in either format": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", map[string]any{"type": "string", "defaultValue": "a \"quoted\",\nvalue", "name": "=1+1, \"x\""})
			me.Call("POST", nodetest.FlagPath("k", "/enable"), nil, "X-Change-Reason", "one, \"two\"").Want(200)
			id, secret := me.OAuthClient("=machine", "flags:write")
			machine := me.WithToken(accessToken(me.Trade(nodetest.Credentials(id, secret)...)))
			machine.Call("POST", nodetest.FlagPath("k", "/disable"), nil, "X-Change-Reason", "=reason").Want(200)
			pages, all := trail(me, "?limit=3"), exported(me, "")
			for i, entry := range all {
				nodetest.Same(t, "position", entry["position"], i)
				delete(entry, "position")
			}
			nodetest.Same(t, "the export", all, pages)
			for after := range all {
				rest := exported(me, fmt.Sprint("?after=", after))
				nodetest.Same(t, "the rest", nodetest.Column(rest, "id"), nodetest.Column(all[after+1:], "id"))
			}
			a := me.Call("GET", exportPath+"?format=csv", nil).Want(200)
			nodetest.Same(t, "headers", []string{a.Header.Get("Content-Type"), a.Header.Get("Content-Disposition")},
				[]string{"text/csv", `attachment; filename="audit.csv"`})
			lines, err := csv.NewReader(strings.NewReader(string(a.Body))).ReadAll()
			if err != nil || len(lines) != len(all)+1 ||
				strings.Join(
					lines[0], " ",
				) != "position id timestamp action resourceType resourceId resourceName environment userId userName actorType reason requestId version changes" {
				t.Fatalf("%v, %v", lines, err)
			}
			wholeLines := strings.SplitAfter(string(a.Body), "\n")
			for after := range 2 {
				goesOn := me.Call("GET", fmt.Sprint(exportPath, "?format=csv&after=", after), nil).Want(200)
				nodetest.Same(t, "what goes on, appended to what there is",
					strings.Join(wholeLines[:after+2], "")+string(goesOn.Body), string(a.Body))
			}
			formulas := map[string]bool{}
			text := func(value any) string { // a spreadsheet must not read it as a formula
				if text := value.(string); strings.HasPrefix(text, "=") {
					formulas[text] = true
					return "'" + text
				}
				return value.(string)
			}
			for i, line := range lines[1:] {
				e := all[i]
				resource := e["resource"].(map[string]any)
				var changes any
				if err := json.Unmarshal([]byte(line[14]), &changes); err != nil {
					t.Fatal(err)
				}
				environment := e["environment"]
				if environment == nil {
					environment = ""
				}
				nodetest.Same(t, "changes", changes, e["changes"])
				nodetest.Same(t, "a line", line[:14], []any{
					fmt.Sprint(i),
					e["id"],
					e["timestamp"],
					e["action"],
					resource["type"],
					resource["id"],
					text(resource["name"]),
					environment,
					e["userId"],
					text(e["userName"]),
					e["actorType"],
					text(e["reason"]),
					e["requestId"],
					fmt.Sprint(e["version"]),
				})
			}
			nodetest.Same(t, "lines", len(lines)-1, len(all))
			nodetest.Same(t, "texts that begin as formulas do", slices.Sorted(maps.Keys(formulas)),
				[]string{"=1+1, \"x\"", "=machine", "=reason"})
			nodetest.Same(t, "past the end", exported(me, "?after=9223372036854775807"), []any{})
			head := me.Call("HEAD", exportPath, nil).Want(200)
			nodetest.Same(t, "HEAD", len(head.Body), 0)
		},
	}.Run(t)
}
