package snapshot

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/murmur3"
	"pgregory.net/rapid"

	"flagledger/events"
)

// The naive evaluator reads the JSON of a flag's facts and of a context, and does what the documents say, slowly and with no regard to how the
// snapshot does it. Whatever happens to a flag, both say the same.

type object = map[string]any

func parse(text []byte) object {
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	var o object
	if err := d.Decode(&o); err != nil {
		panic(err)
	}
	return o
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

func spelt(v any) string {
	b, err := events.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// naive is a flag.
type naive struct {
	exists       bool
	version      int
	created      object
	defaultValue any
	status       string
	variations   []object
	removed      []object // and perhaps still served
	enabled      map[string]bool
	rules        map[string][]any         // that are served
	listed       map[string][]naiveListed // that are written: other ones, while one of them cannot be compiled
	rest         map[string]object
	faults       int
}

type naiveListed struct {
	rule     object
	compiled bool // once, as it stands
}

func nextRules(before []naiveListed, fact object) (after []naiveListed) {
	known := map[string]naiveListed{}
	var order []any
	for _, r := range before {
		known[text(r.rule["id"])] = r
		order = append(order, r.rule["id"])
	}
	for _, r := range list(fact["added"]) {
		known[text(r.(object)["id"])] = naiveListed{rule: r.(object)}
	}
	for _, change := range list(fact["changed"]) {
		to := change.(object)["to"].(object)
		known[text(to["id"])] = naiveListed{rule: to}
	}
	if change, ok := fact["order"].(object); ok {
		order = list(change["to"])
	}
	for _, id := range order {
		after = append(after, known[text(id)])
	}
	return after
}

func (n *naive) apply(version int, name string, fact object) {
	environment := ""
	if e, ok := fact["environment"].(object); ok {
		environment = text(e["id"])
	}
	if name == "flag.created" {
		*n = naive{exists: true, version: version, created: fact, defaultValue: fact["defaultValue"], status: "active", faults: n.faults, enabled: map[string]bool{}, rules: map[string][]any{}, listed: map[string][]naiveListed{}, rest: map[string]object{}}
		for _, v := range list(fact["variations"]) {
			n.variations = append(n.variations, v.(object))
		}
		return
	}
	if !n.exists {
		return
	}
	switch name {
	case "flag.updated":
		if change, ok := fact["defaultValue"].(object); ok {
			n.defaultValue = change["to"]
		}
	case "flag.status_changed":
		n.status = text(fact["to"])
	case "flag.enabled", "flag.disabled":
		n.enabled[environment] = name == "flag.enabled"
	case "flag.variation_added":
		n.variations = append(n.variations, fact["variation"].(object))
	case "flag.variation_updated":
		for i, v := range n.variations {
			if v["id"] == fact["id"] {
				n.variations[i] = object{}
				for field, value := range v {
					n.variations[i][field] = value
					if change, ok := fact[field].(object); ok {
						n.variations[i][field] = change["to"]
					}
				}
			}
		}
	case "flag.variation_removed":
		if v := n.variation(fact["variation"].(object)["id"]); v != nil {
			n.removed = append(n.removed, v)
			n.variations = slices.DeleteFunc(slices.Clone(n.variations), func(other object) bool { return other["id"] == v["id"] })
		}
	case "flag.rules_changed":
		next := nextRules(n.listed[environment], fact)
		n.listed[environment] = next
		for _, r := range next {
			if !r.compiled && !n.canCompile(r.rule) {
				n.faults++
				return
			}
		}
		n.rules[environment] = nil
		for i := range next {
			next[i].compiled = true
			n.rules[environment] = append(n.rules[environment], next[i].rule)
		}
	case "flag.fallthrough_changed":
		to, set := fact["to"].(object)
		if set && !n.canServe(to) {
			n.faults++
			return
		}
		if delete(n.rest, environment); set {
			n.rest[environment] = to
		}
	case "flag.deleted":
		*n = naive{faults: n.faults}
		return
	default:
		panic(name)
	}
	n.version = version
}

func (n *naive) variation(id any) object {
	for _, v := range n.variations {
		if v["id"] == id {
			return v
		}
	}
	return nil
}

func (n *naive) served(id any) object {
	for _, v := range n.removed {
		if v["id"] == id {
			return v
		}
	}
	return n.variation(id)
}

func (n *naive) canCompile(rule object) bool {
	good := n.canServe(rule["serve"].(object))
	for _, c := range list(rule["conditions"]) {
		for _, v := range list(c.(object)["values"]) {
			good = good && takes(text(c.(object)["op"]), v)
		}
	}
	return good
}

func (n *naive) canServe(serve object) bool {
	if id, ok := serve["variationId"]; ok {
		return n.variation(id) != nil
	}
	for _, share := range list(serve["rollout"]) {
		if n.variation(share.(object)["variationId"]) == nil {
			return false
		}
	}
	return true
}

func takes(op string, value any) bool {
	s, isText := value.(string)
	_, isNumber := value.(json.Number)
	_, isBoolean := value.(bool)
	switch op {
	case "in":
		return isText || isNumber || isBoolean
	case "gt", "gte", "lt", "lte":
		return isNumber
	case "matches":
		_, err := regexp.Compile(s)
		return isText && err == nil
	case "before", "after":
		_, ok := naiveTime(s)
		return ok
	case "semver_eq", "semver_gt", "semver_gte", "semver_lt", "semver_lte":
		return semver.MatchString(s)
	default:
		return isText
	}
}

// evaluate answers as Flag.Evaluate. The string is the attribute that a split misses.
func (n *naive) evaluate(environment, key string, attributes object) (Result, string) {
	r := Result{Version: events.Revision(n.version), Value: json.RawMessage(spelt(n.defaultValue))}
	if n.status == "archived" {
		r.Reason = Archived
		return r, ""
	}
	if n.status == "inactive" || !n.enabled[environment] {
		r.Reason = Off
		return r, ""
	}
	r.Enabled = true
	r.HasRules = len(n.rules[environment]) > 0
	for _, rule := range n.rules[environment] {
		rule := rule.(object)
		all := true
		for _, c := range list(rule["conditions"]) {
			all = all && naiveHolds(c.(object), key, attributes)
		}
		if all {
			r.Reason, r.RuleID = RuleMatch, text(rule["id"])
			return n.serve(r, rule["serve"].(object), text(rule["salt"]), key, attributes)
		}
	}
	r.Reason = Fallthrough
	if rest, ok := n.rest[environment]; ok {
		return n.serve(r, rest, text(n.created["salt"]), key, attributes)
	}
	weighed := object{"rollout": []any{}}
	for _, v := range n.variations {
		weighed["rollout"] = append(weighed["rollout"].([]any), object{"variationId": v["id"], "weight": v["weight"]})
	}
	if total(weighed["rollout"]) > 0 {
		return n.serve(r, weighed, text(n.created["salt"]), key, attributes)
	}
	if n.created["type"] == "boolean" {
		r.Value = json.RawMessage("true")
	}
	return r, ""
}

func thousandths(share any) int64 {
	w := rational(share.(object)["weight"].(json.Number))
	return w.Mul(w, big.NewRat(1000, 1)).Num().Int64()
}

func total(rollout any) int64 {
	sum := int64(0)
	for _, share := range list(rollout) {
		sum += thousandths(share)
	}
	return sum
}

func (n *naive) serve(r Result, serve object, salt, key string, attributes object) (Result, string) {
	if value, ok := serve["value"]; ok {
		r.Value = json.RawMessage(spelt(value))
		return r, ""
	}
	served := n.served(serve["variationId"])
	if rollout := list(serve["rollout"]); rollout != nil {
		by := text(serve["bucketBy"])
		if by == "" {
			by = "targetingKey"
		}
		unit := ""
		switch value := naiveAttribute(by, key, attributes).(type) {
		case string:
			unit = value
		case json.Number:
			unit = asJavaScript(rational(value))
		}
		if unit == "" {
			return Result{}, by
		}
		bucket := new(big.Int).SetUint64(uint64(murmur3.Sum32([]byte(salt + ":" + unit))))
		bucket.Mul(bucket, big.NewInt(total(rollout)))
		bucket.Rsh(bucket, 32)
		left := bucket.Int64()
		for _, share := range rollout {
			if left < thousandths(share) {
				served = n.served(share.(object)["variationId"])
				break
			}
			left -= thousandths(share)
		}
		r.Split = true
	}
	r.Value, r.VariationID, r.VariationName = json.RawMessage(spelt(served["value"])), text(served["id"]), text(served["name"])
	return r, ""
}

// naiveAttribute is nil for one that is absent.
func naiveAttribute(name, key string, attributes object) any {
	if name == "targetingKey" {
		if key == "" {
			return nil
		}
		return key
	}
	if value, ok := attributes[name]; ok {
		return value
	}
	path := strings.Split(name, ".")
	if path[0] == "targetingKey" {
		return nil
	}
	var value any = attributes
	for _, step := range path {
		o, ok := value.(object)
		if !ok {
			return nil
		}
		value = o[step]
	}
	return value
}

func naiveHolds(c object, key string, attributes object) bool {
	value := naiveAttribute(text(c["attribute"]), key, attributes)
	holds := false
	if c["op"] == "exists" {
		holds = value != nil
	} else {
		elements, isArray := value.([]any)
		if !isArray {
			elements = []any{value}
		}
		for _, element := range elements {
			for _, v := range list(c["values"]) {
				holds = holds || naivelyCompares(text(c["op"]), element, v)
			}
		}
	}
	return holds != (c["negate"] == true)
}

func naivelyCompares(op string, a, v any) bool {
	number, isNumber := a.(json.Number)
	s, isText := a.(string)
	var order int
	var ordered bool
	switch op {
	case "in":
		if w, ok := v.(json.Number); ok {
			return isNumber && rational(number).Cmp(rational(w)) == 0
		}
		return !isNumber && spelt(a) == spelt(v)
	case "contains":
		return isText && strings.Contains(s, text(v))
	case "starts_with":
		return isText && strings.HasPrefix(s, text(v))
	case "ends_with":
		return isText && strings.HasSuffix(s, text(v))
	case "matches":
		return isText && regexp.MustCompile(text(v)).MatchString(s)
	case "gt", "gte", "lt", "lte":
		if ordered = isNumber; ordered {
			order = rational(number).Cmp(rational(v.(json.Number)))
		}
	case "before", "after":
		at, ok := naiveTime(s)
		bound, _ := naiveTime(text(v))
		order, ordered = at.Compare(bound), ok
	default:
		if ordered = isText && semver.MatchString(s); ordered {
			order = compareSemver(s, text(v))
		}
	}
	if !ordered {
		return false
	}
	switch op {
	case "gt", "after", "semver_gt":
		return order > 0
	case "gte", "semver_gte":
		return order >= 0
	case "lt", "before", "semver_lt":
		return order < 0
	case "lte", "semver_lte":
		return order <= 0
	default:
		return order == 0
	}
}

func rational(n json.Number) *big.Rat {
	r, ok := new(big.Rat).SetString(string(n))
	if !ok {
		panic(n)
	}
	return r
}

var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[-+]([01]\d|2[0-3]):[0-5]\d)$`)

func naiveTime(s string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339, s)
	return t, err == nil && rfc3339.MatchString(s)
}

// semver is the expression that semver.org suggests.
var semver = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?$`)

func compareSemver(a, b string) int {
	x, y := semver.FindStringSubmatch(a), semver.FindStringSubmatch(b)
	for i := 1; i <= 3; i++ {
		if c := whole(x[i]).Cmp(whole(y[i])); c != 0 {
			return c
		}
	}
	switch {
	case x[4] == y[4]:
		return 0
	case x[4] == "":
		return 1
	case y[4] == "":
		return -1
	}
	return slices.CompareFunc(strings.Split(x[4], "."), strings.Split(y[4], "."), func(p, q string) int {
		m, n := whole(p), whole(q)
		switch {
		case m != nil && n != nil:
			return m.Cmp(n)
		case m != nil:
			return -1
		case n != nil:
			return 1
		default:
			return strings.Compare(p, q)
		}
	})
}

func whole(s string) *big.Int {
	if strings.Trim(s, "0123456789") != "" {
		return nil
	}
	n, _ := new(big.Int).SetString(s, 10)
	return n
}

// What is drawn comes from few names and values, so that it often meets.

var (
	theEnvironments = []events.EnvironmentRef{production, {ID: "e2", Name: "development"}}
	theAttributes   = []string{"targetingKey", "plan", "n", "at", "version", "a", "a.b", "a.b.c", "none", "targetingKey.b"}
	theTexts        = []string{"", "pro", "Pro", "probe", "team", "a.b", "größer", "1", "true", "(", "^p", "o$", "[gt]"}
	theTimes        = []string{"2026-03-14T15:09:26Z", "2026-03-14T17:09:26+02:00", "2026-03-14T15:09:26.001Z", "2026-03-14T15:09:26+00:01", "2027-01-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-03-14"}
	theVersions     = []string{"1.0.0", "1.0.0+b", "1.0.0-rc.1", "1.0.0-rc.2", "1.0.0-rc.10", "1.0.0-beta", "1.10.0", "1.9.0", "v1.0.0", "1.0", "1.0.0-01"}
	theOperators    = []events.Operator{
		events.In, events.In, events.In, events.Contains, events.StartsWith, events.EndsWith, events.Matches, events.Greater, events.GreaterEqual, events.Less, events.LessEqual, events.Before,
		events.After, events.SemverEqual, events.SemverGreater, events.SemverAtLeast, events.SemverLess, events.SemverAtMost, events.Exists,
	}
)

func sample[T any](t *rapid.T, from []T) T { return rapid.SampledFrom(from).Draw(t, "one of") }

func oneIn(t *rapid.T, n int) bool { return rapid.IntRange(1, n).Draw(t, "one in") == n }

// drawScalar draws the JSON of a value that conditions compare.
func drawScalar(t *rapid.T) string {
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		return spelt(sample(t, theTimes))
	case 1:
		return spelt(sample(t, theVersions))
	case 2:
		return sample(t, []string{"true", "false"})
	case 3:
		return drawNumber(t)
	default:
		return spelt(sample(t, theTexts))
	}
}

// drawOperand draws a value that mostly suits an operator.
func drawOperand(t *rapid.T, op events.Operator) json.RawMessage {
	for {
		value := drawScalar(t)
		if takes(string(op), parse([]byte(`{"v":` + value + `}`))["v"]) || oneIn(t, 500) {
			return json.RawMessage(value)
		}
	}
}

func drawAttributes(t *rapid.T, depth int) string {
	var members []string
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"targetingKey", "plan", "n", "at", "version", "a", "b", "c", "a.b", "targetingKey.b"}), 0, 6, rapid.ID).Draw(t, "names") {
		members = append(members, spelt(name)+":"+drawAttribute(t, depth))
	}
	return "{" + strings.Join(members, ",") + "}"
}

func drawAttribute(t *rapid.T, depth int) string {
	switch kind := rapid.IntRange(0, 9).Draw(t, "kind"); {
	case kind == 0:
		return "null"
	case kind <= 2 && depth > 0:
		return drawAttributes(t, depth-1)
	case kind == 3 && depth > 0:
		var elements []string
		for range rapid.IntRange(0, 3).Draw(t, "elements") {
			elements = append(elements, drawAttribute(t, depth-1))
		}
		return "[" + strings.Join(elements, ",") + "]"
	default:
		return drawScalar(t)
	}
}

func drawServe(t *rapid.T, variations []events.Variation) events.Serve {
	var ids []string
	for _, v := range variations {
		ids = append(ids, v.ID)
	}
	if oneIn(t, 100) {
		ids = append(ids, "unknown")
	}
	if len(ids) == 0 || oneIn(t, 4) {
		return events.Serve{Value: drawFlagValue(t)}
	}
	if oneIn(t, 2) {
		return events.Serve{VariationID: sample(t, ids)}
	}
	s := events.Serve{BucketBy: sample(t, append([]string{"", ""}, theAttributes...))}
	for range rapid.IntRange(1, 4).Draw(t, "shares") {
		s.Rollout = append(s.Rollout, events.Share{VariationID: sample(t, ids), Weight: drawAWeight(t)})
	}
	s.Rollout[0].Weight++ // not all are nothing
	return s
}

func drawAWeight(t *rapid.T) events.Weight {
	return events.Weight(sample(t, []int64{0, 0, 1, 500, 33_333, 50_000, 9_999_999}))
}

func drawFlagValue(t *rapid.T) json.RawMessage {
	return json.RawMessage(sample(t, []string{"true", "false", `"text"`, "9007199254740993", "1.50", `{"a":[1]}`, "null"}))
}

// drawRules draws the rules that come after others: some of these stay, some change, some go, and some are new.
func drawRules(t *rapid.T, before []events.Rule, variations []events.Variation) []events.Rule {
	list := make([]events.Rule, rapid.IntRange(0, 5).Draw(t, "rules"))
	kept := rapid.Permutation(before).Draw(t, "order")
	for i := range list {
		list[i] = events.Rule{ID: rapid.StringMatching(`r[0-9]{9}`).Draw(t, "id"), Salt: sample(t, theTexts), Serve: drawServe(t, variations)}
		if len(kept) > 0 && oneIn(t, 2) {
			list[i].ID = kept[0].ID
			if oneIn(t, 2) {
				list[i] = kept[0]
			}
			kept = kept[1:]
		}
		if list[i].Conditions != nil {
			continue
		}
		list[i].Conditions = []events.Condition{}
		for range rapid.SampledFrom([]int{0, 1, 1, 1, 2, 3}).Draw(t, "conditions") {
			c := events.Condition{Attribute: sample(t, theAttributes), Op: sample(t, theOperators), Negate: oneIn(t, 3)}
			for n := rapid.SampledFrom([]int{1, 1, 2, 3, 12}).Draw(t, "values"); n > 0 && c.Op != events.Exists; n-- {
				c.Values = append(c.Values, drawOperand(t, c.Op))
			}
			list[i].Conditions = append(list[i].Conditions, c)
		}
	}
	return list
}

// drawFact draws what can happen to a flag of some variations, and what is left of these.
func (b *both) drawFact(t *rapid.T, variations []events.Variation) (events.Fact, []events.Variation) {
	environment := sample(t, theEnvironments)
	switch kind := rapid.IntRange(0, 15).Draw(t, "fact"); {
	case kind == 0:
		return events.FlagEnabled{Environment: environment}, variations
	case kind == 1:
		return events.FlagDisabled{Environment: environment}, variations
	case kind == 2:
		return events.FlagStatusChanged{To: sample(t, []events.FlagStatus{events.ActiveFlag, events.ActiveFlag, events.ActiveFlag, events.InactiveFlag, events.ArchivedFlag})}, variations
	case kind == 3:
		return events.FlagUpdated{DefaultValue: &events.Change[json.RawMessage]{To: drawFlagValue(t)}}, variations
	case kind == 4 && len(variations) < 5:
		v := drawAVariation(t)
		return events.VariationAdded{Variation: v}, append(slices.Clip(variations), v)
	case kind <= 6 && len(variations) > 0:
		fact := events.VariationUpdated{ID: sample(t, variations).ID, Weight: &events.Change[events.Weight]{To: drawAWeight(t)}}
		if oneIn(t, 2) {
			fact.Value, fact.Weight = &events.Change[json.RawMessage]{To: drawFlagValue(t)}, nil
		}
		return fact, variations
	case kind == 7 && len(variations) > 0:
		v := sample(t, variations)
		return events.VariationRemoved{Variation: v}, variations
	case kind <= 13:
		before := b.rules[environment.ID]
		return events.ChangeRules(environment, before, drawRules(t, before, variations)), variations
	case kind == 14:
		return events.FallthroughChanged{Environment: environment}, variations
	case oneIn(t, 5):
		return events.FlagDeleted{}, nil
	default:
		to := drawServe(t, variations)
		return events.FallthroughChanged{Environment: environment, To: &to}, variations
	}
}

func drawAVariation(t *rapid.T) events.Variation {
	return events.Variation{
		ID: rapid.StringMatching(`v[0-9]{9}`).Draw(t, "id"), Name: sample(t, theTexts), Value: drawFlagValue(t), Weight: sample(t, []events.Weight{0, 0, 1, 20_000}),
	}
}

// both is a flag in a snapshot and in the naive evaluator.
type both struct {
	snapshot *Snapshot
	naive    naive
	facts    events.Revision
	rules    map[string][]events.Rule // by environment id, as they are written
}

func newBoth() *both { return &both{snapshot: of()} }

// apply takes a fact as a store keeps it.
func (b *both) apply(fact events.Fact) {
	stored, err := events.Encode(events.Event{Fact: fact})
	if err != nil {
		panic(err)
	}
	event, err := events.Decode(stored)
	if err != nil {
		panic(err)
	}
	b.facts++
	switch fact := event.Fact.(type) {
	case events.FlagCreated:
		b.rules = map[string][]events.Rule{}
	case events.RulesChanged:
		b.rules[fact.Environment.ID] = events.ApplyRules(b.rules[fact.Environment.ID], fact, func(r events.Rule) string { return r.ID }, func(r events.Rule) events.Rule { return r })
	}
	e := events.Recorded{Event: event, Stream: events.FlagStream("t", "k"), Revision: b.facts, Name: stored.Name}
	b.snapshot.apply(events.Page{Events: []events.Recorded{e}}, slog.New(slog.DiscardHandler))
	b.naive.apply(int(b.facts), stored.Name, parse(stored.Data))
}

// flag is nil where there is none.
func (b *both) flag() *Flag {
	tenant, _ := b.snapshot.Tenant("t")
	flag, _ := tenant.Flag("k")
	return flag
}

type failer interface {
	Fatalf(format string, args ...any)
}

// check compares what both serve.
func (b *both) check(t failer, environment, key, sent string) (Result, error) {
	want, wantMissing := b.naive.evaluate(environment, key, parse([]byte(sent)))
	got, err := b.flag().Evaluate(environment, &Context{TargetingKey: key, Attributes: attributes(sent)})
	gotMissing := ""
	if missing, ok := errors.AsType[*NoUnitError](err); ok {
		gotMissing = missing.Attribute
	}
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) || gotMissing != wantMissing {
		t.Fatalf("in %s, %q with %s is served\n%+v, %v, want\n%+v, missing %q", environment, key, sent, got, err, want, wantMissing)
	}
	return got, err
}

// drawFlag draws a flag's facts, and calls after each of them.
func drawFlag(t *rapid.T, after func(*both)) *both {
	b := newBoth()
	var variations []events.Variation
	var next []events.Fact
	for range rapid.IntRange(3, 18).Draw(t, "facts") {
		var fact events.Fact
		switch {
		case !b.naive.exists:
			variations = nil
			for range rapid.IntRange(0, 3).Draw(t, "variations") {
				variations = append(variations, drawAVariation(t))
			}
			fact = events.FlagCreated{
				Key: "k", Type: sample(t, []events.FlagType{events.BooleanFlag, events.JSONFlag}), DefaultValue: drawFlagValue(t), Salt: sample(t, theTexts), Variations: variations,
			}
			next = []events.Fact{events.FlagEnabled{Environment: theEnvironments[0]}, events.FlagEnabled{Environment: theEnvironments[1]}}
		case len(next) > 0:
			fact, next = next[0], next[1:]
		default:
			fact, variations = b.drawFact(t, variations)
		}
		b.apply(fact)
		variations = slices.DeleteFunc(slices.Clone(variations), func(v events.Variation) bool { return b.naive.exists && b.naive.variation(v.ID) == nil })
		after(b)
	}
	return b
}

var theKeys = []string{"", "u", "pro", "probe", "größer", "1.0.0", theTimes[0]}

func TestEvaluationIsAsWritten(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		b := drawFlag(t, func(*both) {})
		seen["faults"] += b.naive.faults
		if int(b.snapshot.Faults()) != b.naive.faults || (b.flag() != nil) != b.naive.exists {
			t.Fatalf("%d faults, a flag %v, want %d and %v", b.snapshot.Faults(), b.flag(), b.naive.faults, b.naive.exists)
		}
		if !b.naive.exists {
			return
		}
		for range 20 {
			key, sent := sample(t, theKeys), drawAttributes(t, 3)
			for _, e := range theEnvironments {
				got, err := b.check(t, e.ID, key, sent)
				seen[string(got.Reason)]++
				seen[fmt.Sprint("split: ", got.Split)]++
				seen[fmt.Sprint("unit missing: ", err != nil)]++
			}
		}
	})
	for _, c := range []string{
		string(Archived), string(Off), string(RuleMatch), string(Fallthrough), "split: true", "split: false", "unit missing: true", "unit missing: false", "faults",
	} {
		if seen[c] == 0 {
			t.Errorf("the flags that were drawn have no case of %s: %v", c, seen)
		}
	}
}

// Readers hold flags without a lock: whatever comes after, one that they have found serves what it served.
func TestAFlagNeverChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var contexts []*Context
		for range 10 {
			contexts = append(contexts, &Context{TargetingKey: sample(t, theKeys), Attributes: attributes(drawAttributes(t, 2))})
		}
		var flags []*Flag
		var served []string
		serves := func(f *Flag) string {
			var all strings.Builder
			for _, x := range contexts {
				for _, e := range theEnvironments {
					r, err := f.Evaluate(e.ID, x)
					fmt.Fprintf(&all, "%+v %v\n", r, err)
				}
			}
			return all.String()
		}
		drawFlag(t, func(b *both) {
			for i, f := range flags {
				if now := serves(f); now != served[i] {
					t.Fatalf("version %d served\n%s and now, after version %d,\n%s", f.version, served[i], b.facts, now)
				}
			}
			if f := b.flag(); f != nil {
				flags, served = append(flags, f), append(served, serves(f))
			}
		})
	})
}

// FuzzContext evaluates flags that have a rule of each operator for contexts of any kind.
func FuzzContext(f *testing.F) {
	operands := map[events.Operator]string{
		events.In: `["pro",1.5,true,"a","b","c","d","e","f","g",1,2,3,4,5,6,7,8,9007199254740993]`, events.Contains: `["b","xyz"]`, events.StartsWith: `["ab"]`, events.EndsWith: `["@acme.com","z"]`,
		events.Matches: `["^a+$","(?i)x(y|z)*"]`, events.Greater: `[5,1e400]`, events.GreaterEqual: `[7]`, events.Less: `[-1,-1.5]`, events.LessEqual: `[0.5]`,
		events.Before: `["2026-03-14T15:09:26Z"]`, events.After: `["2026-03-14T15:09:26.5+02:00"]`, events.SemverEqual: `["1.0.0"]`, events.SemverGreater: `["2.0.0-rc.1"]`,
		events.SemverAtLeast: `["1.5.0"]`, events.SemverLess: `["0.1.0"]`, events.SemverAtMost: `["0.2.0-a.1"]`, events.Exists: `[]`,
	}
	var all []*both
	for op, values := range operands {
		for _, attribute := range []string{"a", "a.b", "targetingKey"} {
			b := newBoth()
			b.apply(three)
			b.apply(on)
			condition := events.Condition{Attribute: attribute, Op: op, Values: raw(values)}
			negated := condition
			negated.Negate = true
			b.apply(ruled(
				events.Rule{ID: "r", Salt: "r", Conditions: []events.Condition{condition}, Serve: rolled("a", half("a"), half("b"))},
				events.Rule{ID: "n", Conditions: []events.Condition{negated, {Attribute: "c.d.e", Op: events.Exists}}, Serve: seven},
			))
			b.apply(otherwise(rolled("targetingKey", half("b"), half("c"))))
			all = append(all, b)
		}
	}
	for _, sent := range []string{
		`{"a":"abc"}`, `{"a":["xyz",5.5,true,null,["a"]]}`, `{"a":{"b":1e401}}`, `{"a":-1.50}`, `{"a":"2026-03-14T15:09:26.25+01:00"}`, `{"a":"1.0.0-rc.1+b"}`, `{"a.b":"pro","c":{"d":{"e":0}}}`,
		`{"a":9007199254740993}`, `{"targetingKey":"x","a":{"a":[]}}`, `{"a":"\u0000\ud83d\ude00"}`, `{"a":1e999999999999}`, `{}`,
	} {
		f.Add("user-42", sent)
		f.Add("", sent)
	}
	huge := regexp.MustCompile(`[eE][+-]?\d{4}`)
	f.Fuzz(func(t *testing.T, key, sent string) {
		if !json.Valid([]byte(sent)) || sent[0] != '{' {
			t.Skip("not the attributes of a context")
		}
		for _, b := range all {
			if huge.MatchString(sent) { // more than the naive evaluator can write down
				_, _ = b.flag().Evaluate(production.ID, &Context{TargetingKey: key, Attributes: attributes(sent)})
				continue
			}
			_, _ = b.check(t, production.ID, key, sent)
		}
	})
}
