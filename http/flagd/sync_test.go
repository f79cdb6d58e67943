package flagd_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"buf.build/gen/go/open-feature/flagd/grpc/go/flagd/sync/v1/syncv1grpc"
	v1 "buf.build/gen/go/open-feature/flagd/protocolbuffers/go/flagd/sync/v1"
	provider "github.com/open-feature/go-sdk-contrib/providers/flagd/pkg"
	"github.com/open-feature/go-sdk/openfeature"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
	"flagledger/events/state"
	apihttp "flagledger/http"
	"flagledger/projections/snapshot/flagd/flagdtest"
)

// connect returns a connection of gRPC in clear to a service.
func connect(s *nodetest.Service) *grpc.ClientConn {
	s.T.Helper()
	conn, err := grpc.NewClient(strings.TrimPrefix(s.URL, "http://"),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		s.T.Fatal(err)
	}
	s.T.Cleanup(func() { _ = conn.Close() })
	return conn
}

// client calls the protocol with an Authorization header and a selector. Either may be empty.
type client struct {
	syncv1grpc.FlagSyncServiceClient
	authorization, selector string
}

func newClient(s *nodetest.Service, authorization, selector string) client {
	return client{syncv1grpc.NewFlagSyncServiceClient(connect(s)), authorization, selector}
}

func (c client) context(ctx context.Context) context.Context {
	if c.authorization != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", c.authorization)
	}
	if c.selector != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "flagd-selector", c.selector)
	}
	return ctx
}

// fetch returns the definitions of all flags by key.
func (c client) fetch(ctx context.Context) (map[string]json.RawMessage, error) {
	answer, err := c.FetchAllFlags(c.context(ctx), &v1.FetchAllFlagsRequest{})
	if err != nil {
		return nil, err
	}
	return flagsIn(answer.FlagConfiguration)
}

func flagsIn(document string) (map[string]json.RawMessage, error) {
	var d struct{ Flags map[string]json.RawMessage }
	err := json.Unmarshal([]byte(document), &d)
	return d.Flags, err
}

// serverKey creates an evaluation key of a server for production.
func serverKey(me *nodetest.Client) (id, key string) {
	me.Service.T.Helper()
	made := me.Call("POST", "/api/v1/evaluation-keys",
		map[string]any{"name": "Shop", "kind": "server", "environment": "production"}).Want(201).Object()
	return made["id"].(string), made["key"].(string)
}

func TestCredentialsAndSelectors(t *testing.T) {
	t.Parallel()
	s := nodetest.Shared(t)
	me := s.SignUp(nodetest.Address())
	project, _ := me.CreateProject("Web")
	me.CreateEnabledFlag("plain", nil)
	me.CreateEnabledFlag("web", map[string]any{"projectId": project, "tags": []any{"checkout"}})
	me.CreateFlag("gone", nil)
	me.Call("PATCH", nodetest.FlagPath("gone"), `{"status":"archived"}`).Want(200)
	_, key := serverKey(me)
	browser := me.Call("POST", "/api/v1/evaluation-keys",
		map[string]any{"name": "Page", "kind": "browser", "environment": "production"}).Want(201).Object()["key"].(string)
	id, secret := me.OAuthClient("Backend", "flags:sync")
	basic := func(id, secret string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(id+":"+secret))
	}
	token := me.Machine("flags:sync").Token
	for name, c := range map[string]struct {
		authorization, selector string
		code                    codes.Code
		flags                   string
	}{
		"a server's key":                {"Bearer " + key, "", codes.OK, "plain web"},
		"its environment":               {"Bearer " + key, "environment=production", codes.OK, "plain web"},
		"another environment":           {"Bearer " + key, "environment=development", codes.PermissionDenied, ""},
		"a token":                       {"Bearer " + token, "environment=development", codes.OK, "plain web"},
		"no such environment":           {"Bearer " + token, "environment=none", codes.NotFound, ""},
		"a client's secret":             {basic(id, secret), "", codes.OK, "plain web"},
		"a wrong secret":                {basic(id, "wrong"), "", codes.Unauthenticated, ""},
		"a tag":                         {basic(id, secret), "tag=checkout", codes.OK, "web"},
		"a project":                     {basic(id, secret), "environment=production,project=" + project, codes.OK, "web"},
		"no such project":               {basic(id, secret), "project=none", codes.NotFound, ""},
		"another selector":              {basic(id, secret), "flagSetId=x", codes.InvalidArgument, ""},
		"a selector twice":              {basic(id, secret), "tag=a,tag=b", codes.InvalidArgument, ""},
		"a browser's key":               {"Bearer " + browser, "", codes.PermissionDenied, ""},
		"a person":                      {"Bearer " + me.Token, "", codes.PermissionDenied, ""},
		"a token without the scope":     {"Bearer " + me.Machine("flags:evaluate").Token, "", codes.PermissionDenied, ""},
		"no credentials":                {"", "", codes.Unauthenticated, ""},
		"an unknown key":                {"Bearer sk_" + strings.Repeat("a", 26), "", codes.Unauthenticated, ""},
		"credentials of another scheme": {"Digest x", "", codes.Unauthenticated, ""},
	} {
		flags, err := newClient(s, c.authorization, c.selector).fetch(t.Context())
		keys := strings.Join(slices.Sorted(maps.Keys(flags)), " ")
		if status.Code(err) != c.code || keys != c.flags {
			t.Errorf("%s: %q, %v, want %q, %v", name, keys, err, c.flags, c.code)
		}
	}
	for name, header := range map[string][2]string{
		"another tenant's header":    {"x-tenant-id", me.NewTenant("other").Tenant},
		"an environment's header":    {"x-environment", "development"},
		"a key beside authorization": {"x-api-key", key},
	} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), header[0], header[1])
		if _, err := newClient(s, "Bearer "+key, "").fetch(ctx); status.Code(err) == codes.OK {
			t.Errorf("%s is accepted", name)
		}
		if _, err := newClient(s, basic(id, secret), "").fetch(ctx); header[0] == "x-api-key" && status.Code(err) == codes.OK {
			t.Errorf("%s of Basic is accepted", name)
		}
	}
	if _, err := newClient(s, "", "").GetMetadata(t.Context(), &v1.GetMetadataRequest{}); status.Code(err) != codes.Unauthenticated { //nolint:staticcheck // old providers call it
		t.Errorf("metadata without credentials: %v", err)
	}
	health := healthgrpc.NewHealthClient(connect(s))
	answer, err := health.Check(t.Context(), &healthgrpc.HealthCheckRequest{Service: "flagd.sync.v1.FlagSyncService"})
	if err != nil || answer.Status != healthgrpc.HealthCheckResponse_SERVING {
		t.Errorf("health: %v, %v", answer, err)
	}
}

// received passes on the documents of a stream, until its error.
func received(t *testing.T, ctx context.Context, c client) (documents chan string, ended chan error) { //nolint:revive // t first, as everywhere
	t.Helper()
	stream, err := c.SyncFlags(c.context(ctx), &v1.SyncFlagsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	documents, ended = make(chan string, 100), make(chan error, 1)
	go func() {
		for {
			answer, err := stream.Recv()
			if err != nil {
				ended <- err
				return
			}
			documents <- answer.FlagConfiguration
		}
	}()
	return documents, ended
}

func next[T any](t *testing.T, from chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(time.Minute):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

func TestStreamSendsChangesTogether(t *testing.T) {
	t.Parallel()
	s := nodetest.Shared(t)
	me := s.SignUp(nodetest.Address())
	me.CreateEnabledFlag("first", nil)
	id, key := serverKey(me)
	documents, ended := received(t, t.Context(), newClient(s, "Bearer "+key, ""))
	others, _ := received(t, t.Context(), newClient(s, "Bearer "+key, "tag=none"))
	if first := next(t, documents); !strings.Contains(first, `"first":{"state":"ENABLED","variants":{"on":true}`) {
		t.Errorf("the first message is %s", first)
	}
	next(t, others)
	for i := range 5 {
		me.CreateEnabledFlag(fmt.Sprint("more-", i), nil)
	}
	messages := 0
	for last := ""; !strings.Contains(last, "more-4") || !strings.Contains(last, `"more-4":{"state":"ENABLED","variants":{"on"`); messages++ {
		last = next(t, documents)
	}
	if messages > 9 {
		t.Errorf("ten changes came in %d messages", messages)
	}
	if len(others) > 0 {
		t.Errorf("another set got %s", <-others)
	}
	var list []map[string]any
	me.Service.Eventually("the message counts as a prefetch", func() bool {
		list = me.Call("GET", "/api/v1/flags?q=first", nil).Want(200).List()
		return list[0]["lastPrefetchedAt"] != nil
	})
	me.Call("DELETE", "/api/v1/evaluation-keys/"+id, nil).Want(204)
	if err := next(t, ended); status.Code(err) != codes.Unauthenticated {
		t.Errorf("a deleted key ends the stream with %v", err)
	}
}

func TestStreamEndsAsUnavailable(t *testing.T) {
	t.Parallel()
	s := nodetest.New(t)
	me := s.SignUp(nodetest.Address())
	me.CreateEnabledFlag("k", nil)
	id, secret := me.OAuthClient("Backend", "flags:sync")
	c := newClient(s, "Basic "+base64.StdEncoding.EncodeToString([]byte(id+":"+secret)), "environment=qa")
	me.Call("POST", "/api/v1/tenants/"+me.Tenant+"/environments", `{"environment":"qa"}`).Want(201)
	documents, ended := received(t, t.Context(), c)
	next(t, documents)
	me.Call("DELETE", "/api/v1/tenants/"+me.Tenant+"/environments/qa", nil)
	if err := next(t, ended); status.Code(err) != codes.NotFound {
		t.Errorf("a deleted environment ends the stream with %v", err)
	}
	c.selector = ""
	documents, ended = received(t, t.Context(), c)
	next(t, documents)
	s.Node.API.Flagd.EndStreams()
	if err := next(t, ended); status.Code(err) != codes.Unavailable {
		t.Errorf("a stopping node ends the stream with %v", err)
	}
}

// perCall sends a header with each call of a provider.
type perCall string

func (p perCall) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": string(p)}, nil
}

func (perCall) RequireTransportSecurity() bool { return false }

// goProvider returns the official provider for Go, which evaluates in process.
func goProvider(s *nodetest.Service, key string) *provider.Provider {
	s.T.Helper()
	address, err := url.Parse(s.URL)
	if err != nil {
		s.T.Fatal(err)
	}
	port, err := strconv.ParseUint(address.Port(), 10, 16)
	if err != nil {
		s.T.Fatal(err)
	}
	p, err := provider.NewProvider(provider.WithInProcessResolver(), provider.WithHost(address.Hostname()),
		provider.WithPort(uint16(port)), provider.WithDeadline(30_000),
		provider.WithGrpcDialOptionsOverride([]grpc.DialOption{
			grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithPerRPCCredentials(perCall("Bearer " + key)),
		}))
	if err != nil {
		s.T.Fatal(err)
	}
	if err := p.Init(openfeature.EvaluationContext{}); err != nil {
		s.T.Fatal(err)
	}
	s.T.Cleanup(p.Shutdown)
	return p
}

// create creates a drawn flag, and returns false if the service does not take it.
func create(me *nodetest.Client, f *state.Flag) bool {
	var variations []any
	for _, v := range f.Variations {
		variations = append(variations, map[string]any{"name": v.Name, "value": v.Value, "weight": v.Weight})
	}
	body := map[string]any{"key": f.Key, "type": f.Type, "defaultValue": f.DefaultValue}
	if len(variations) > 0 {
		body["flag_variations"] = variations
	}
	me.CreateFlag(f.Key, body)
	ids := map[string]string{}
	for i, v := range me.Variations(f.Key) {
		ids[f.Variations[i].ID] = v["id"].(string)
	}
	serve := func(s events.Serve) events.Serve {
		s.VariationID = ids[s.VariationID]
		s.Rollout = slices.Clone(s.Rollout)
		for i := range s.Rollout {
			s.Rollout[i].VariationID = ids[s.Rollout[i].VariationID]
		}
		return s
	}
	var rules []any
	for _, r := range f.Rules[flagdtest.EnvironmentID] {
		rules = append(rules, map[string]any{"conditions": r.Conditions, "serve": serve(r.Serve)})
	}
	if len(rules) > 0 && me.SetRules(f.Key, text(rules)).Status != 200 {
		return false
	}
	if s := f.FallthroughIn(flagdtest.EnvironmentID); s != nil {
		me.SetFallthrough(f.Key, `{"serve":`+string(must(json.Marshal(serve(*s))))+`}`).Want(200)
	}
	if f.Enabled.Has(flagdtest.EnvironmentID) {
		me.Call("POST", nodetest.FlagPath(f.Key, "/enable"), nil).Want(200)
	}
	if f.Status != events.ActiveFlag {
		me.Call("PATCH", nodetest.FlagPath(f.Key), map[string]any{"status": f.Status}).Want(200)
	}
	return true
}

func text(rules []any) string { return `{"rules":` + string(must(json.Marshal(rules))) + `}` }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// In process the official provider serves the values of OFREP or an error, and says FLAG_NOT_FOUND for what it is not
// sent.
func TestGoProviderServesSameAsOFREP(t *testing.T) {
	t.Parallel()
	s := nodetest.New(t)
	me := s.SignUp(nodetest.Address())
	me.Call("POST", "/api/v1/segments", `{"key":"beta"}`).Want(201)
	r := rand.New(rand.NewPCG(uint64(flagdtest.Seed()), 2))
	types := map[string]events.FlagType{}
	for _, f := range flagdtest.Flags(r, flagdtest.Many(80)) {
		if create(me, f) {
			types[f.Key] = f.Type
		}
	}
	_, key := serverKey(me)
	sent := must(newClient(s, "Bearer "+key, "").fetch(t.Context()))
	inProcess := goProvider(s, key)
	same, failed := 0, 0
	for _, attributes := range flagdtest.Contexts(r, flagdtest.Many(100)) {
		var flattened openfeature.FlattenedContext
		if err := json.Unmarshal(must(json.Marshal(attributes)), &flattened); err != nil {
			t.Fatal(err)
		}
		var remote struct {
			Flags []struct {
				Key, ErrorCode string
				Value          any
			}
		}
		me.WithToken(key).Call("POST", "/ofrep/v1/evaluate/flags", map[string]any{"context": attributes}).Want(200).Decode(&remote)
		for _, want := range remote.Flags {
			got, refused := evaluated(t.Context(), inProcess, want.Key, types[want.Key], flattened)
			defined := sent[want.Key] != nil
			switch {
			case !defined && refused != openfeature.FlagNotFoundCode:
				t.Errorf("%s is not sent, and served as %v %s", want.Key, got, refused)
			case refused != "":
				failed++
			case want.ErrorCode != "":
				t.Errorf("%s is served as %v for %v, want %s", want.Key, got, attributes, want.ErrorCode)
			case fmt.Sprint(got) != fmt.Sprint(want.Value):
				t.Errorf("%s is served as %v for %s, want %v: %s", want.Key, got, must(json.Marshal(attributes)), want.Value, sent[want.Key])
			default:
				same++
			}
		}
	}
	t.Logf("%d flags, %d of them sent: %d values are the same, %d are errors", len(types), len(sent), same, failed)
	if same < failed || len(sent) < len(types)/2 {
		t.Error("too few flags are evaluated in process")
	}
}

// evaluated evaluates a flag with a provider as a value of its type.
func evaluated(
	ctx context.Context, p *provider.Provider, key string, kind events.FlagType, c openfeature.FlattenedContext,
) (any, openfeature.ErrorCode) {
	var value any
	var detail openfeature.ProviderResolutionDetail
	switch kind {
	case events.BooleanFlag:
		d := p.BooleanEvaluation(ctx, key, false, c)
		value, detail = d.Value, d.ProviderResolutionDetail
	case events.StringFlag:
		d := p.StringEvaluation(ctx, key, "", c)
		value, detail = d.Value, d.ProviderResolutionDetail
	case events.NumberFlag:
		d := p.FloatEvaluation(ctx, key, 0, c)
		value, detail = d.Value, d.ProviderResolutionDetail
	case events.JSONFlag:
		d := p.ObjectEvaluation(ctx, key, nil, c)
		value, detail = d.Value, d.ProviderResolutionDetail
	}
	return value, detail.ResolutionDetail().ErrorCode
}

// The program of docs/connect.md evaluates in process what flagd can express, and by OFREP what it cannot.
func TestDocumentedProgramRuns(t *testing.T) {
	t.Parallel()
	page := must(os.ReadFile("../../docs/connect.md"))
	found := regexp.MustCompile("(?s)```go\n// inprocess.go\n(.*?)```").FindSubmatch(page)
	if found == nil {
		t.Fatal("the page has no inprocess.go")
	}
	s := nodetest.Shared(t)
	me := s.SignUp(nodetest.Address())
	me.CreateEnabledFlag("new-cart", nil)
	_, key := serverKey(me)
	address := must(url.Parse(s.URL))
	program := strings.NewReplacer("http://127.0.0.1:8080", s.URL, "127.0.0.1", address.Hostname(),
		"WithPort(8080)", "WithPort("+address.Port()+")").Replace(string(found[1]))
	folder := t.TempDir()
	if err := os.WriteFile(folder+"/main.go", []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func() string {
		command := exec.CommandContext(t.Context(), folder+"/program")
		command.Env = append(os.Environ(), "FLAGLEDGER_KEY="+key)
		return strings.TrimSpace(string(must(command.Output())))
	}
	if printed, err := exec.CommandContext(t.Context(), "go", "build", "-o", folder+"/program", folder+"/main.go").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, printed)
	}
	nodetest.Same(t, "the program", run(), "new cart: true")
	me.SetRules("new-cart", `{"rules":[{"conditions":[{"attribute":"plan","op":"matches","values":["^p.*o$"]}],"serve":{"value":true}}]}`).Want(200)
	me.SetFallthrough("new-cart", `{"serve":{"value":false}}`).Want(200)
	flag := me.Call("GET", nodetest.FlagPath("new-cart"), nil).Want(200).Object()
	nodetest.Same(t, "inProcess", flag["inProcess"],
		map[string]any{"supported": false, "reason": "rule 1: matches: it is a regular expression that flagd cannot express"})
	nodetest.Same(t, "the program by OFREP", run(), "new cart: true")
}

func TestConfigIsDocument(t *testing.T) {
	t.Parallel()
	s := nodetest.Shared(t)
	me := s.SignUp(nodetest.Address())
	project, _ := me.CreateProject("Web")
	me.CreateEnabledFlag("plain", nil)
	me.CreateEnabledFlag("web", map[string]any{"projectId": project})
	me.Call("POST", "/api/v1/segments", `{"key":"beta"}`).Want(201)
	for key, condition := range map[string]string{
		"in_segment": `{"op":"in_segment","values":["beta"]}`,
		"$now":       `{"attribute":"$now","op":"after","values":["2026-03-14T15:09:26Z"]}`,
	} {
		name := strings.Trim(key, "$")
		me.CreateEnabledFlag(name, nil)
		me.SetRules(name, `{"rules":[{"conditions":[`+condition+`],"serve":{"value":true}}]}`).Want(200)
		reason := me.Call("GET", nodetest.FlagPath(name), nil).Want(200).Object()["inProcess"].(map[string]any)
		if text, _ := reason["reason"].(string); reason["supported"] != false || !strings.Contains(text, key) {
			t.Errorf("%s is %v", name, reason)
		}
	}
	for query, want := range map[string]string{
		"": "plain web", "&environment=development": "in_segment now plain web", "&projectId=" + project: "web",
	} {
		a := me.Call("GET", "/api/v1/config?format=flagd"+query, nil).Want(200)
		flags := must(flagsIn(string(a.Body)))
		nodetest.Same(t, query, strings.Join(slices.Sorted(maps.Keys(flags)), " "), want)
	}
	me.Call("GET", "/api/v1/config?format=yaml", nil).Refused(422, "format")
	me.Call("GET", "/api/v1/config", nil).Refused(422, "format")
	me.Call("GET", "/api/v1/config?format=flagd&environment=none", nil).Refused(404)
	me.Call("GET", "/api/v1/config?format=flagd&projectId=none", nil).Refused(404)
	me.Machine("flags:read").Call("GET", "/api/v1/config?format=flagd", nil).Want(200)
	me.Machine("flags:sync").Call("GET", "/api/v1/config?format=flagd", nil).Refused(403)
}

func TestMessageOverFourMiBIsRefused(t *testing.T) {
	t.Parallel()
	s := nodetest.Shared(t)
	me := s.SignUp(nodetest.Address())
	value := map[string]any{"text": strings.Repeat("x", 60_000)}
	for i := range 71 {
		tag := "large"
		if i == 0 {
			tag = "small"
		}
		me.CreateFlag(fmt.Sprint("large-", i), map[string]any{"type": "json", "defaultValue": value, "tags": []any{tag}})
	}
	_, key := serverKey(me)
	_, err := newClient(s, "Bearer "+key, "").fetch(t.Context())
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "tag=") {
		t.Errorf("the refusal is %v", err)
	}
	_, ended := received(t, t.Context(), newClient(s, "Bearer "+key, ""))
	if err := next(t, ended); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("the stream ends with %v", err)
	}
	if flags, err := newClient(s, "Bearer "+key, "tag=small").fetch(t.Context()); len(flags) != 1 {
		t.Errorf("with a tag there are %d flags, %v", len(flags), err)
	}
}

// Huge metadata, reset calls and calls without an end leave the service as it is.
func TestAbusiveClientsLeaveServiceResponsive(t *testing.T) {
	t.Parallel()
	s := nodetest.Shared(t)
	me := s.SignUp(nodetest.Address())
	me.CreateEnabledFlag("k", nil)
	_, key := serverKey(me)
	c := newClient(s, "Bearer "+key, "")
	large := metadata.AppendToOutgoingContext(t.Context(), "large", strings.Repeat("x", 1<<20))
	if _, err := c.fetch(large); err == nil {
		t.Error("a MiB of metadata is accepted")
	}
	if _, err := c.FetchAllFlags(c.context(t.Context()), &v1.FetchAllFlagsRequest{ProviderId: strings.Repeat("x", 1<<20)}); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a MiB of a message is %v", err)
	}
	for range 2000 {
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := c.SyncFlags(c.context(ctx), &v1.SyncFlagsRequest{}); err != nil && status.Code(err) != codes.Unavailable {
			t.Fatal(err)
		}
		cancel()
	}
	s.Eventually("calls are answered", func() bool {
		flags, err := newClient(s, "Bearer "+key, "").fetch(t.Context())
		return err == nil && len(flags) == 1
	})
}

// A stopping server ends connections of HTTP/2, which net/http never sees as idle for good.
func TestShutdownEndsConnections(t *testing.T) {
	t.Parallel()
	s := nodetest.New(t)
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := apihttp.NewGracefulServer(s.Node.API.Flagd.SyncServer(), listener, 0)
	go func() { _ = server.Serve() }()
	other := *s
	other.URL = "http://" + listener.Addr().String()
	health := healthgrpc.NewHealthClient(connect(&other))
	for range 3 {
		if _, err := health.Check(t.Context(), &healthgrpc.HealthCheckRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		t.Errorf("a connection stays: %v", err)
	}
	answer, err := http.Get(s.URL + "/flagd.sync.v1.FlagSyncService/SyncFlags")
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	nodetest.Same(t, "a call without gRPC", answer.StatusCode, http.StatusMethodNotAllowed)
}
