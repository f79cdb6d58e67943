package http_test

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands/payment/paymenttest"
	"flagledger/events"
)

// Each row of the interface is called once correctly and once without permission. The test checks the path, method,
// headers, body, status, the type of each member of the answer, and the shape of an error. The OpenAPI document has
// exactly these rows and the additions.
func TestContract(t *testing.T) {
	t.Parallel()
	// Its clock is the machine's, because external tokens use it.
	s := shopOn(t, nodetest.Database(t), paymenttest.New(t, time.Now),
		func(c *settings.Config) { c.SuperUsers = []string{"root@example.com"} })
	s.stripe.AddProduct("prod_1")
	s.stripe.AddCoupon("LAUNCH25")
	s.stripe.AddPromotion("SPRING")
	root, owner := s.SignUp("root@example.com"), s.SignUp("owner@example.com")
	_, operations := root.Document()
	rows := slices.Clone(contractRows)
	for _, old := range sameShape {
		i := slices.IndexFunc(contractRows, func(row contractRow) bool { return row.name == current(old) })
		row := contractRows[i]
		row.name = old
		rows = append(rows, row)
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if !strings.Contains(row.name, "/admin/users") { // these list all people, including new ones
				t.Parallel()
			}
			w := newWorld(t, s, row, root, owner)
			w.checkDocumented(operations[row.name])
			w.checkAnswer()
			w.checkRefusal()
		})
	}
	for name := range operations {
		listed := slices.ContainsFunc(rows, func(row contractRow) bool { return row.name == name })
		if added := additions[name] != ""; added == listed {
			t.Errorf("%s is a row of the interface: %v, an addition: %v", name, listed, added)
		}
	}
	for name := range additions {
		if operations[name] == nil {
			t.Errorf("the addition %s is not in the document", name)
		}
	}
}

// world creates the things for a row's call.
type world struct {
	contractRow
	t            *testing.T
	shop         shop
	root         *nodetest.Client
	me           *nodetest.Client // a tenant's admin; root for calls of the platform
	method, path string
	things       map[string]string // created for the call, by name
}

func newWorld(t *testing.T, s shop, row contractRow, root, owner *nodetest.Client) *world {
	t.Helper()
	w := &world{contractRow: row, t: t, shop: s, things: map[string]string{}}
	w.method, w.path, _ = strings.Cut(row.name, " ")
	as := func(c *nodetest.Client) *nodetest.Client {
		mine := *c
		mine.Service = c.Service.In(t)
		return &mine
	}
	w.root = as(root)
	switch {
	case strings.HasSuffix(w.path, "/accept"):
		w.me = w.root.Service.SignUp(w.thing("newEmail"))
		w.root.Call("POST", invitationsPath, map[string]string{"email": w.me.Email, "role": "admin"}).Want(201)
	case strings.Contains(w.path, "/admin/"):
		w.me = w.root
		w.thing("invitationId")
	case strings.Contains(w.path, "/sandbox/"):
		w.me = newSandbox(as(owner))
	case strings.HasSuffix(w.path, "/portal"):
		w.me = as(owner).NewTenant("Contract")
		w.me.Call("POST", checkoutPath, purchase("standard")).Want(200)
	case strings.HasSuffix(w.path, "-password") || strings.HasSuffix(w.path, "/logout"):
		w.me = w.root.Service.SignUp(w.thing("newEmail"))
	case strings.Contains(w.path, "/notifications"):
		w.me = w.root.Service.SignUp(w.thing("newEmail"))
		w.thing("id")
		w.thing("token")
	case strings.HasSuffix(w.path, "/subscription"):
		w.me = as(owner).NewTenant("Contract")
		if row.answer.(shape)["id"] == "string" {
			now := time.Now()
			w.me.Subscribe(events.Subscription{
				ID:          "sub_" + w.me.Tenant,
				CustomerID:  "cus_" + w.me.Tenant,
				Plan:        events.StandardPlan,
				Status:      events.Active,
				PeriodStart: now,
				PeriodEnd:   now.AddDate(0, 1, 0),
			})
		}
	default:
		w.me = as(owner).NewTenant("Contract")
		if w.thing("projectId"); strings.Contains(w.path, "/flags") {
			w.thing("variationId")
		}
		switch w.path {
		case "/api/v1/oauth/clients", "/api/oauth/clients":
			w.thing("clientId")
		case "/api/v1/segments":
			w.thing("segmentKey")
		case "/api/v1/evaluation-keys":
			w.thing("keyId")
		case "/api/v1/cleanup", "/api/v1/tags", "/api/v1/config":
			w.thing("flagKey")
		}
	}
	return w
}

var thingPattern = regexp.MustCompile(`\{(\w+)\}|<<(\w+)>>`)

// filled returns a path or a body with names of existing things.
func (w *world) filled(text string) string {
	return thingPattern.ReplaceAllStringFunc(text, func(name string) string { return w.thing(strings.Trim(name, "{}<>")) })
}

// thing returns something that a call names. It is created on first use.
func (w *world) thing(name string) string {
	if w.things[name] == "" {
		w.things[name] = w.newThing(name)
	}
	return w.things[name]
}

func (w *world) newThing(name string) string {
	switch name {
	case "newEmail":
		return nodetest.Address()
	case "email":
		return w.me.Email
	case "idToken":
		return w.me.Token
	case "tokenFromOutside":
		return outside(w.me).IDToken
	case "googleToken", "githubToken", "microsoftToken":
		provider := strings.TrimSuffix(name, "Token") + ".com"
		return newForger(w.t, w.me.Service, w.me.Token).with("firebase", map[string]any{"sign_in_provider": provider})
	case "projectId":
		id, _ := w.me.CreateProject("Contract")
		return id
	case "flagKey":
		w.me.CreateFlag("contract", map[string]any{"projectId": w.thing("projectId"), "tags": []string{"contract"}})
		if strings.HasSuffix(w.path, "/dependents") {
			w.me.CreateFlag("dependent", nil)
			requireFlags(w.me, "dependent", isOff("contract")).Want(200)
		}
		return "contract"
	case "requiredKey":
		w.me.CreateFlag("required", nil)
		return "required"
	case "requiredVariationId":
		return w.me.AddVariation(w.thing("requiredKey"), `{"name":"on","value":true}`).Object()["id"].(string)
	case "segmentKey":
		if strings.HasSuffix(w.path, "/forget") {
			createPrivateSegment(w.me, "contract")
			return "contract"
		}
		createSegment(w.me, "contract", "")
		members(w.me, "contract", `{"list":"included","add":["u"]}`).Want(200)
		if strings.HasSuffix(w.path, "/flags") {
			createSegment(w.me, "user", ofSegment("contract"))
		}
		return "contract"
	case "segmentRuleId":
		w.me.Call("PUT", segmentPath(w.thing("segmentKey"), "/rules"), `{"rules":[{"conditions":[]}]}`).Want(200)
		return asMaps(w.me.Call("GET", segmentPath("contract", "/rules"), nil).Want(200).Object()["rules"])[0]["id"].(string)
	case "variationId":
		return w.me.AddVariation(w.thing("flagKey"), `{"name":"on","value":true}`).Object()["id"].(string)
	case "tenantId":
		return w.me.Tenant
	case "environment":
		w.me.Call("POST", "/api/v1/tenants/"+w.me.Tenant+"/environments", `{"environment":"contract"}`).Want(201)
		return "contract"
	case "userId":
		switch {
		case strings.Contains(w.path, "/product-tours/") || strings.Contains(w.path, "/notifications"):
			return w.me.UserID
		case w.me == w.root:
			return w.root.Service.SignUp(w.thing("newEmail")).UserID
		default:
			return w.me.Join("viewer").UserID
		}
	case "invitationId":
		return w.root.Call("POST", invitationsPath, map[string]string{"email": nodetest.Address(), "role": "viewer"}).Want(201).Object()["id"].(string)
	case "clientId":
		w.things[name], w.things["clientSecret"] = w.me.OAuthClient("Contract", "flags:read", "flags:evaluate")
		return w.things[name]
	case "keyId":
		key, _ := createKey(w.me, "browser", nil)
		return key["id"].(string)
	case "id":
		return w.me.Call("POST", inboxPath+"/send", map[string]any{
			"userId": w.me.UserID, "tenantId": w.me.Tenant, "title": "T", "type": "t", "data": map[string]string{"k": "v"},
		}).Want(201).Object()["id"].(string)
	case "token":
		w.me.Call("POST", devicesPath, map[string]string{"deviceToken": w.thing("newDeviceToken") + "2", "deviceType": "web"}).
			Want(201)
		return w.thing("newDeviceToken") + "2"
	case "newDeviceToken":
		return uuid.NewString()
	case "customerId":
		return w.shop.stripe.AddCustomer(map[string]string{"flagledger_tenant": w.me.Tenant})
	case "callerId":
		return w.me.UserID
	case "event":
		return w.me.Call("GET", "/api/v1/audit?limit=1", nil).Want(200).List()[0]["id"].(string)
	case "ruleId":
		w.me.SetRules(w.thing("flagKey"), `{"rules":[{"name":"r","conditions":[],"serve":{"value":true}}]}`).Want(200)
		return asMaps(w.me.Rules("contract").Object()["rules"])[0]["id"].(string)
	case "served": // by the fallthrough
		w.me.SetFallthrough(w.thing("flagKey"), `{"serve":{"variationId":"`+w.thing("variationId")+`"}}`).Want(200)
		return w.thing("variationId")
	case "rolledOut": // by the fallthrough
		w.me.SetFallthrough(w.thing("flagKey"), `{"serve":{"rollout":[{"variationId":"`+w.thing("variationId")+`","weight":1}]}}`).
			Want(200)
		return w.thing("variationId")
	case "version":
		w.thing("flagKey")
		return "1"
	case "now":
		return time.Now().UTC().Format(events.RecordedFormat)
	case "tourKey":
		return "contract@1"
	}
	w.t.Fatalf("the test does not know how to make the thing %s", name)
	return ""
}

// isForm reports whether the row's body is a form, as for the token endpoint.
func (row contractRow) isForm() bool { return strings.HasPrefix(row.body, "grant_type=") }

// checkDocumented checks that the document has the row's headers, each member that it sends, and its status as the only
// success. A repeated registration of a device returns 200.
func (w *world) checkDocumented(operation map[string]any) {
	w.t.Helper()
	if operation == nil {
		w.t.Fatalf("%s is not in the document", w.name)
	}
	evaluates := strings.HasSuffix(w.path, "/evaluate") // which needs no tenant if it has an evaluation key
	for name := range strings.FieldsSeq(w.headers) {
		i := slices.IndexFunc(asMaps(operation["parameters"]),
			func(p map[string]any) bool { return p["in"] == "header" && p["name"] == name })
		if i < 0 {
			w.t.Errorf("the document does not show the header %s", name)
		} else if required, _ := asMaps(operation["parameters"])[i]["required"].(bool); required != (name == "X-Tenant-ID" && !evaluates) {
			w.t.Errorf("the document shows the header %s as required: %v", name, required)
		}
	}
	responses := object(operation["responses"])
	for status := range responses {
		// If the thing may exist already, the answer may be 200 too.
		if status[0] == '2' && status != strconv.Itoa(w.status) && (w.status != 201 || status != "200") ||
			responses[strconv.Itoa(w.status)] == nil {
			w.t.Errorf("the document shows %s, want %d", status, w.status)
		}
	}
	if sends := operation["requestBody"] != nil; sends != (w.body != "" && w.method != "GET") {
		w.t.Errorf("the document shows a body: %v", sends)
	}
	for name := range w.query() {
		if !slices.ContainsFunc(
			asMaps(operation["parameters"]), func(p map[string]any) bool { return p["in"] == "query" && p["name"] == name },
		) {
			w.t.Errorf("the document does not show the parameter %s", name)
		}
	}
}

// query returns the query that the row sends.
func (w *world) query() url.Values {
	if w.method != "GET" {
		return nil
	}
	values, err := url.ParseQuery(w.body)
	if err != nil {
		w.t.Fatal(err)
	}
	return values
}

// headersBut returns the headers of the row as pairs for Call, without one of them.
func (w *world) headersBut(left string) (pairs []string) {
	values := map[string]string{"X-Tenant-ID": w.me.Tenant, "X-Environment": "production", "Idempotency-Key": "contract"}
	values[left] = ""
	for name := range strings.FieldsSeq(w.headers) {
		pairs = append(pairs, name, values[name])
	}
	return pairs
}

// call makes the row's call.
func (w *world) call(c *nodetest.Client, headers []string) *nodetest.Answer {
	var body any
	path := w.filled(w.path)
	switch {
	case w.method == "GET" && w.body != "":
		path += "?" + w.body
	case w.body != "":
		body = w.filled(w.body)
	}
	if w.isForm() {
		headers = append(headers, "Content-Type", "application/x-www-form-urlencoded")
	}
	return c.Call(w.method, path, body, headers...)
}

func (w *world) checkAnswer() {
	w.t.Helper()
	if strings.Contains(w.headers, "X-Tenant-ID") {
		w.call(w.me, w.headersBut("X-Tenant-ID")).Refused(400)
	}
	a := w.call(w.me, w.headersBut("")).Want(w.status)
	for _, name := range []string{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"} {
		if a.Header.Get(name) == "" {
			w.t.Errorf("the answer has no %s", name)
		}
	}
	w.checkHeaders(a)
	if w.answer == nil {
		nodetest.Same(w.t, "the body", string(a.Body), "")
		return
	}
	hasShape(w.t, "the body", a.JSON(), w.answer)
}

// checkHeaders checks the location of a new thing, the version of a flag, and the headers of a legacy path. A sign-up
// creates nothing with a path.
func (w *world) checkHeaders(a *nodetest.Answer) {
	w.t.Helper()
	if location := a.Header.Get("Location"); w.status == 201 && !strings.HasSuffix(w.path, "/signup") &&
		!strings.HasPrefix(location, "/api/v1/") {
		w.t.Errorf("Location is %q", location)
	}
	if single, ok := w.answer.(shape); ok && single["defaultValue"] != nil && a.Header.Get("ETag") == "" {
		w.t.Error("the answer has no ETag")
	}
	old := !strings.HasPrefix(w.path, "/api/v1/") && w.path != "/health" && w.path != "/"
	if since := a.Header.Get("Deprecation"); deprecation.MatchString(since) != old {
		w.t.Errorf("Deprecation is %q", since)
	}
	named := slices.ContainsFunc(a.Header.Values("Link"), func(link string) bool {
		return strings.HasPrefix(link, "</api/v1/") && strings.HasSuffix(link, `>; rel="successor-version"`)
	})
	if named != old {
		w.t.Errorf("Link is %q", a.Header.Values("Link"))
	}
}

// checkRefusal checks the answer to a caller without a token, or to a wrong method if the call needs no token.
func (w *world) checkRefusal() {
	w.t.Helper()
	nobody := w.me.Service.Anonymous()
	if leastRole(w.name) != "anyone" {
		a := w.call(nobody, w.headersBut("")).Refused(401)
		nodetest.Same(w.t, "WWW-Authenticate", a.Header.Get("WWW-Authenticate"), "Bearer")
		return
	}
	a := nobody.Call("PUT", w.path, nil).Want(405)
	nodetest.Same(w.t, "Allow", strings.Split(a.Header.Get("Allow"), ", ")[0], w.method)
	problem := shape{"type": "string", "title": "string", "status": "integer", "detail": "string", "instance": "string"}
	if w.isForm() {
		problem = merged(problem, shape{"error": "string", "error_description": "string"})
	}
	hasShape(w.t, "the problem", a.JSON(), problem)
}
