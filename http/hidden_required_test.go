package http_test

import (
	"fmt"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

// The error of an evaluation by a browser names neither a required flag that browsers do not see, nor the attribute
// that it splits its traffic by.
func TestErrorsHideRequiredFlagsFromBrowsers(t *testing.T) {
	const empty, emptyOFREP = `{}`, `{"context":{}}`
	calls := []struct{ path, body string }{
		{nodetest.FlagPath("k", "/evaluate"), empty},
		{"/api/v1/flags/evaluate", empty},
		{"/api/v1/flags/evaluate", `{"flagKeys":["k"]}`},
		{"/ofrep/v1/evaluate/flags/k", emptyOFREP},
		{"/ofrep/v1/evaluate/flags", emptyOFREP},
	}
	cases := nodetest.Cases{}
	for _, by := range []string{"company.id", "targetingKey"} {
		cases["of a split by "+by] = func(t *testing.T, me *nodetest.Client) {
			v, _ := me.TwoVariations("payments")
			me.Call("POST", nodetest.FlagPath("payments", "/enable"), nil).Want(200)
			me.SetFallthrough("payments", fmt.Sprintf(`{"serve":{"rollout":[{"variationId":%q,"weight":1}],"bucketBy":%q}}`,
				v, by)).Want(200)
			me.CreateEnabledFlag("k", map[string]any{"clientSide": true})
			requireFlags(me, "k", fmt.Sprintf(`{"flagKey":"payments","serves":[{"variationId":%q}]}`, v)).Want(200)
			_, page := createKey(me, "browser", nil)
			_, server := createKey(me, "server", nil)
			for _, call := range calls {
				check := func(c *nodetest.Client, hidden bool) {
					answer := c.Call("POST", call.path, call.body)
					text := string(answer.Body)
					if named := strings.Contains(text, "payments"); named == hidden {
						t.Errorf("%s, hidden %v: %s", call.path, hidden, text)
					}
					if named := strings.Contains(text, by); named == (hidden && by != "targetingKey") {
						t.Errorf("%s, hidden %v: %s", call.path, hidden, text)
					}
					if by != "targetingKey" && hidden && !strings.Contains(text, "lack what a flag splits its traffic by") {
						t.Errorf("%s does not say what is wrong: %s", call.path, text)
					}
				}
				check(page, true)
				check(server, false)
			}
			me.Call("PATCH", nodetest.FlagPath("payments"), `{"clientSide":true}`).Want(200)
			names(page.Evaluate("k", empty).Want(422), "requires payments, which splits its traffic by it")
		}
	}
	cases.Run(t)
}
