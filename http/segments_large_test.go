package http_test

import (
	"fmt"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

// The most members that a call may name fit into its body, whatever characters they have.
func TestMostMembersOfTheGreatestLength(t *testing.T) {
	list := func(padding string) []string {
		all := make([]string, 10_000)
		for i := range all {
			all[i] = fmt.Sprintf("%06d", i) + strings.Repeat(padding, 250)
		}
		return all
	}
	nodetest.Cases{
		"as JSON": func(_ *testing.T, me *nodetest.Client) {
			createSegment(me, "beta", "")
			me.Call("POST", segmentPath("beta", "/members"), map[string]any{"list": "included", "add": list("x")}).Want(200).
				Shows(map[string]any{"added": 10_000})
			tooLarge := `{"list":"included","add":["x"]}` + strings.Repeat(" ", 4<<20)
			names(members(me, "beta", tooLarge).Refused(400), "4 MiB")
		},
		"as CSV": func(_ *testing.T, me *nodetest.Client) {
			createSegment(me, "beta", "")
			for _, padding := range []string{"&", `\`} {
				me.Call("POST", segmentPath("beta", "/members?list=included"), strings.Join(list(padding), "\n"),
					"Content-Type", "text/csv").Want(200).Shows(map[string]any{"added": 10_000})
			}
		},
	}.Run(t)
}
