package http_test

import (
	"strings"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

func TestLinksOfFlags(t *testing.T) {
	wiki := map[string]any{"title": "Größe <&>", "url": "https://wiki.example.com/a?b=c&d#e"}
	board := map[string]any{"title": "Board", "url": "https://board.example.com"}
	nodetest.Cases{
		"reads, the history, versions and differences show the links": func(t *testing.T, me *nodetest.Client) {
			created := me.Call("POST", "/api/v1/flags", map[string]any{
				"key": "k", "type": "boolean", "links": []any{wiki},
			}).Want(201).Shows(map[string]any{"links": []any{wiki}})
			shownAs(me, t, created)
			then := "?" + atNow()
			patch := func(links any) *nodetest.Answer {
				return me.Call("PATCH", nodetest.FlagPath("k"), map[string]any{"links": links}).Want(200)
			}
			shownAs(me, t, patch([]any{board, wiki}).Shows(map[string]any{"links": []any{board, wiki}, "version": 2}))
			patch([]any{board, wiki}).Shows(map[string]any{"version": 2})
			me.Call("PATCH", nodetest.FlagPath("k"), `{"name":"other"}`).Want(200).Shows(map[string]any{"links": []any{board, wiki}})
			shownAs(me, t, patch(nil).Shows(map[string]any{"links": []any{}, "version": 4}))
			patch([]any{wiki})
			shownAs(me, t, patch([]any{}).Shows(map[string]any{"links": []any{}, "version": 6}))

			history := me.Call("GET", nodetest.FlagPath("k", "/history"), nil).Want(200).List()
			for i, want := range map[int]any{
				2: map[string]any{"from": []any{board, wiki}, "to": []any{}},
				4: map[string]any{"from": []any{wiki}, "to": []any{board, wiki}},
				5: map[string]any{"from": nil, "to": []any{wiki}},
			} {
				nodetest.Same(t, "an entry of the history", history[i]["changes"].(map[string]any)["links"], want)
			}
			me.Call("GET", nodetest.FlagPath("k", then), nil).Want(200).Shows(map[string]any{"links": []any{wiki}})
			nodetest.Same(t, "the list at a time",
				me.Call("GET", "/api/v1/flags"+then, nil).Want(200).List()[0]["links"], []any{wiki})
			nodetest.Same(t, "version 2", me.Call("GET", nodetest.FlagPath("k", "/versions/2"), nil).Want(200).
				Object()["flag"].(map[string]any)["links"], []any{board, wiki})
			nodetest.Same(t, "the difference",
				me.Call("GET", nodetest.FlagPath("k", "/diff?from=1&to=2"), nil).Want(200).Object()["changes"],
				[]any{map[string]any{"field": "links", "environment": nil, "from": []any{wiki}, "to": []any{board, wiki}}})
			me.Call("POST", nodetest.FlagPath("k", "/revert"), `{"version":2}`).Want(200).
				Shows(map[string]any{"links": []any{board, wiki}})
		},
		"a link has a title and an address of https": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			long := func(n int) string { return "https://example.com/" + strings.Repeat("a", n-len("https://example.com/")) }
			for _, c := range []struct {
				title, url string
				wrong      []string
			}{
				{"t", long(2000), nil},
				{strings.Repeat("é", 200), "https://example.com:8443/", nil},
				{"t", long(2001), []string{"links[1].url"}},
				{"", "http://example.com", []string{"links[1].title", "links[1].url"}},
				{strings.Repeat("é", 201), "javascript:alert(1)", []string{"links[1].title", "links[1].url"}},
				{"t", "https://", []string{"links[1].url"}},
				{"t", "https://example.com/\n", []string{"links[1].url"}},
				{"t", "", []string{"links[1].url"}},
			} {
				sent := map[string]any{"links": []any{board, map[string]any{"title": c.title, "url": c.url}}}
				answer := me.Call("PATCH", nodetest.FlagPath("k"), sent)
				if c.wrong == nil {
					answer.Want(200).Shows(sent)
					continue
				}
				answer.Refused(422, c.wrong...)
				sent["key"], sent["type"] = "l", "boolean"
				me.Call("POST", "/api/v1/flags", sent).Refused(422, c.wrong...)
			}
		},
		"a flag has at most 20": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			var many []any
			for range 20 {
				many = append(many, board)
			}
			me.Call("PATCH", nodetest.FlagPath("k"), map[string]any{"links": many}).Want(200).Shows(map[string]any{"links": many})
			me.Call("PATCH", nodetest.FlagPath("k"), map[string]any{"links": append(many, board)}).Refused(422, "links")
		},
	}.Run(t)
}
