package http_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/open-feature/go-sdk-contrib/providers/ofrep"
	"github.com/open-feature/go-sdk/openfeature"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands/tooltest"
	"flagledger/http/evaluation"
)

// setStage creates the flags for OpenFeature's clients: one of each type, reason and error. The clients' tests in
// testdata/openfeature know them too.
func setStage(c *nodetest.Client) {
	c.Service.T.Helper()
	variations := []any{map[string]any{"name": "on", "value": "yes"}, map[string]any{"name": "off", "value": "no"}}
	for key, fields := range map[string]map[string]any{
		"boolean":    {},
		"string":     {"type": "string", "defaultValue": "text"},
		"integer":    {"type": "number", "defaultValue": 42},
		"float":      {"type": "number", "defaultValue": 1.5},
		"object":     {"type": "json", "defaultValue": map[string]any{"list": []any{1, "two", nil}}},
		"ruled":      {"type": "string", "defaultValue": "rest", "flag_variations": variations},
		"by-number":  {"type": "string", "defaultValue": "rest", "flag_variations": variations},
		"by-company": {"type": "string", "defaultValue": "rest", "flag_variations": variations},
		"split":      {"type": "string", "defaultValue": "rest", "flag_variations": []any{map[string]any{"name": "on", "value": "yes", "weight": 1}}},
		"archived":   {},
	} {
		c.CreateEnabledFlag(key, fields)
	}
	c.CreateFlag("disabled", map[string]any{"defaultValue": true})
	c.Call("PATCH", nodetest.FlagPath("archived"), `{"status":"archived"}`).Want(200)
	on := func(key string) string { return c.Variations(key)[0]["id"].(string) }
	c.SetRules("ruled", fmt.Sprintf(`{"rules":[{"conditions":[{"attribute":"plan","op":"in","values":["pro"]}],"serve":{"variationId":%q}}]}`, on("ruled"))).
		Want(200)
	c.SetRules("by-number", fmt.Sprintf(`{"rules":[{"conditions":[{"attribute":"seats","op":"gt","values":[9007199254740992]}],"serve":{"variationId":%q}}]}`, on("by-number"))).
		Want(200)
	c.SetRules("by-company", fmt.Sprintf(`{"rules":[{"conditions":[{"attribute":"plan","op":"exists"}],"serve":{"rollout":[{"variationId":%q,"weight":1}],"bucketBy":"company.id"}}]}`, on("by-company"))).
		Want(200)
}

// openFeature is the official SDK for Go with its OFREP provider.
func openFeature(c *nodetest.Client, headers ...string) *openfeature.Client {
	c.Service.T.Helper()
	options := []ofrep.Option{ofrep.WithBearerToken(c.Token), ofrep.WithHeader("X-Tenant-ID", c.Tenant)}
	for i := 0; i < len(headers); i += 2 {
		options = append(options, ofrep.WithHeader(headers[i], headers[i+1]))
	}
	domain := c.Service.T.Name() + strings.Join(headers, " ")
	if err := openfeature.SetNamedProviderAndWait(domain, ofrep.NewProvider(c.Service.URL, options...)); err != nil {
		c.Service.T.Fatal(err)
	}
	return openfeature.NewClient(domain)
}

// details checks the result of a client: value, reason, variant and error with an explanation.
func details[T any](
	t *testing.T, got openfeature.GenericEvaluationDetails[T], value any, reason openfeature.Reason, variant string,
	code openfeature.ErrorCode,
) {
	t.Helper()
	nodetest.Same(t, got.FlagKey, []any{got.Value, got.Reason, got.Variant, got.ErrorCode},
		[]any{value, reason, variant, code})
	if explained := got.ErrorMessage != ""; explained != (code != "") {
		t.Errorf("%s: the error is %q", got.FlagKey, got.ErrorMessage)
	}
}

func TestOpenFeatureForGo(t *testing.T) {
	t.Parallel()
	s := nodetest.Shared(t)
	me := s.SignUp(nodetest.Address()).NewTenant("stage")
	setStage(me)
	ctx := t.Context()
	user := func(attributes map[string]any) openfeature.EvaluationContext {
		return openfeature.NewEvaluationContext("user-42", attributes)
	}
	none := openfeature.EvaluationContext{}
	pro := map[string]any{"plan": "pro"}
	const noError = openfeature.ErrorCode("")
	sdk := func(t *testing.T, headers ...string) *openfeature.Client {
		c := *me
		c.Service = s.In(t)
		return openFeature(&c, headers...)
	}

	t.Run("values of all types", func(t *testing.T) {
		c := sdk(t)
		for _, who := range []openfeature.EvaluationContext{none, user(nil), user(pro)} {
			boolean, _ := c.BooleanValueDetails(ctx, "boolean", false, who)
			details(t, boolean, true, openfeature.StaticReason, "", noError)
			text, _ := c.StringValueDetails(ctx, "string", "code", who)
			details(t, text, "text", openfeature.StaticReason, "", noError)
			integer, _ := c.IntValueDetails(ctx, "integer", 0, who)
			details(t, integer, 42, openfeature.StaticReason, "", noError)
			float, _ := c.FloatValueDetails(ctx, "float", 0, who)
			details(t, float, 1.5, openfeature.StaticReason, "", noError)
			object, _ := c.ObjectValueDetails(ctx, "object", nil, who)
			details(t, object, map[string]any{"list": []any{1, "two", nil}}, openfeature.StaticReason, "", noError)
		}
	})
	t.Run("all reasons", func(t *testing.T) {
		c := sdk(t)
		ask := func(key string, who openfeature.EvaluationContext) openfeature.StringEvaluationDetails {
			got, _ := c.StringValueDetails(ctx, key, "code", who)
			return got
		}
		details(t, ask("ruled", user(pro)), "yes", openfeature.TargetingMatchReason, "on", noError)
		details(t, ask("ruled", user(nil)), "rest", openfeature.DefaultReason, "", noError)
		details(t, ask("split", user(nil)), "yes", openfeature.SplitReason, "on", noError)
		details(t, ask("by-company", user(map[string]any{"plan": "pro", "company": map[string]any{"id": "c-7"}})), "yes",
			openfeature.SplitReason, "on", noError)
		details(t, ask("by-number", user(map[string]any{"seats": int64(9007199254740993)})), "yes",
			openfeature.TargetingMatchReason, "on", noError)
		details(t, ask("by-number", user(map[string]any{"seats": int64(9007199254740992)})), "rest",
			openfeature.DefaultReason, "", noError)
		// the provider ignores the flag's default, true
		disabled, _ := c.BooleanValueDetails(ctx, "disabled", false, user(nil))
		details(t, disabled, false, openfeature.DisabledReason, "", noError)
		nodetest.Same(t, "metadata", ask("ruled", user(pro)).FlagMetadata, map[string]any{
			"flagVersion": 3,
			"version":     "3",
			"flagSetId":   me.Tenant + "/production",
			"variationId": me.Variations("ruled")[0]["id"],
			"ruleId":      me.Evaluate("ruled", `{"attributes":{"plan":"pro"}}`).Want(200).Object()["ruleId"],
		})
	})
	t.Run("all errors", func(t *testing.T) {
		ask := func(c *openfeature.Client, key string, who openfeature.EvaluationContext) openfeature.StringEvaluationDetails {
			got, err := c.StringValueDetails(ctx, key, "code", who)
			if err == nil {
				t.Errorf("%s: no error", key)
			}
			return got
		}
		fails := func(got openfeature.StringEvaluationDetails, code openfeature.ErrorCode) {
			t.Helper()
			details(t, got, "code", openfeature.ErrorReason, "", code)
		}
		c := sdk(t)
		fails(ask(c, "none", user(nil)), openfeature.FlagNotFoundCode)
		fails(ask(c, "archived", user(nil)), openfeature.FlagNotFoundCode)
		fails(ask(c, "split", none), openfeature.TargetingKeyMissingCode)
		fails(ask(c, "by-company", user(pro)), openfeature.InvalidContextCode)
		fails(ask(c, "string", user(map[string]any{"name": "a\x00b"})), openfeature.ParseErrorCode)
		fails(ask(c, "boolean", user(nil)), openfeature.TypeMismatchCode)
		fails(ask(sdk(t, "Authorization", "Bearer none"), "string", user(nil)), openfeature.GeneralCode)
		fails(ask(sdk(t, "X-Tenant-ID", "none"), "string", user(nil)), openfeature.GeneralCode)
		fails(ask(sdk(t, "X-Environment", "none"), "string", user(nil)), openfeature.FlagNotFoundCode) // it takes any 404 for it
		off, _ := sdk(t, "X-Environment", "development").StringValueDetails(ctx, "string", "code", user(nil))
		details(t, off, "code", openfeature.DisabledReason, "", noError)
	})
	t.Run("a change is served at once", func(t *testing.T) {
		c := sdk(t)
		for _, value := range []string{"one", "two"} {
			me.Call(http.MethodPatch, nodetest.FlagPath("string"), map[string]string{"defaultValue": value}).Want(200)
			nodetest.Same(t, "the value", c.String(context.Background(), "string", "code", none), value)
		}
	})
}

func TestOpenFeatureForJavaScript(t *testing.T) {
	poor := limited(t, 20, 1_000_000, 1_000_000).SignUp("poor@example.com")
	folder, err := tooltest.Install("openfeature", os.DirFS("testdata/openfeature"))
	tooltest.Check(t, "openfeature", err)
	me := nodetest.Start(t, nodetest.Database(t), settings.Config{
		// clients shall reconnect
		Environment: "development", Streams: streamLimits(evaluation.StreamLimits{MaxAge: time.Second}),
		// no server listens there: the addresses of streams follow the calls
		PublicURL: "http://localhost:1", PublicURLAssumed: true,
	}, nodetest.Log(t)).SignUp("me@example.com").NewTenant("stage")
	setStage(me)
	for _, sdk := range []string{"server", "web"} {
		t.Run(sdk, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			node := exec.CommandContext(ctx, "node", "--test", sdk+".test.mjs")
			node.Dir = folder
			node.Env = append(os.Environ(),
				"SERVICE_URL="+me.Service.URL, "SERVICE_TOKEN="+me.Token, "SERVICE_TENANT="+me.Tenant,
				"LIMITED_URL="+poor.Service.URL, "LIMITED_TOKEN="+poor.Token, "LIMITED_TENANT="+poor.Tenant)
			out, err := node.CombinedOutput()
			if err != nil {
				t.Errorf("%v", err)
			}
			t.Logf("%s", out)
		})
	}
}
