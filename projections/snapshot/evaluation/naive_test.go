package evaluation

import (
	"encoding/json"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"github.com/twmb/murmur3"

	"flagledger/events"
)

// The naive evaluator reads the JSON of a flag's facts and of a context, and does what the documents say, slowly and
// independently of the snapshot. Both must always agree.

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
	enabled      map[string]bool
	written      map[string]naiveTargeting // by environment id
	served       map[string]naiveTargeting // an older one, while the written one cannot be compiled
	broken       map[string]bool
	newlyBroken  bool // by the last fact
}

// naiveTargeting holds what a flag serves in an environment.
type naiveTargeting struct {
	rules      []object
	rest       object // the fallthrough, or nil
	variations []object
}

func nextRules(before []object, fact object) (after []object) {
	known := map[string]object{}
	var order []any
	for _, r := range before {
		known[text(r["id"])] = r
		order = append(order, r["id"])
	}
	for _, r := range list(fact["added"]) {
		known[text(r.(object)["id"])] = r.(object)
	}
	for _, change := range list(fact["changed"]) {
		to := change.(object)["to"].(object)
		known[text(to["id"])] = to
	}
	if change, ok := fact["order"].(object); ok {
		order = list(change["to"])
	}
	for _, id := range order {
		after = append(after, known[text(id)])
	}
	return after
}

// apply applies a fact, except its version.
func (n *naive) apply(name string, fact object) {
	n.newlyBroken = false
	environment := ""
	if e, ok := fact["environment"].(object); ok {
		environment = text(e["id"])
	}
	if name == "flag.created" {
		*n = naive{
			exists:       true,
			created:      fact,
			defaultValue: fact["defaultValue"],
			status:       "active",
			enabled:      map[string]bool{},
			written:      map[string]naiveTargeting{},
			served:       map[string]naiveTargeting{},
			broken:       map[string]bool{},
		}
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
		n.variations = slices.Clone(n.variations) // what is served may have the list of before
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
		id := fact["variation"].(object)["id"]
		n.variations = slices.DeleteFunc(slices.Clone(n.variations), func(v object) bool { return v["id"] == id })
	case "flag.reverted":
		order := list(fact["variations"].(object)["to"])
		n.variations = slices.Clone(n.variations)
		slices.SortFunc(n.variations, func(a, b object) int {
			return slices.Index(order, a["id"]) - slices.Index(order, b["id"])
		})
	case "flag.rules_changed":
		t := n.written[environment]
		t.rules = nextRules(t.rules, fact)
		n.written[environment] = t
	case "flag.fallthrough_changed":
		t := n.written[environment]
		t.rest, _ = fact["to"].(object)
		n.written[environment] = t
	case "flag.deleted":
		*n = naive{}
		return
	default:
		panic(name)
	}
	for _, e := range theEnvironments {
		n.serveWritten(e.ID)
	}
}

// serveWritten starts to serve what is written for an environment, if it compiles.
func (n *naive) serveWritten(environment string) {
	t := n.written[environment]
	good := t.rest == nil || n.canServe(t.rest)
	for _, r := range t.rules {
		good = good && n.canCompile(r)
	}
	if good {
		t.variations = n.variations
		n.served[environment] = t
	}
	n.newlyBroken = n.newlyBroken || !good && !n.broken[environment]
	n.broken[environment] = !good
}

func withID(variations []object, id any) object {
	for _, v := range variations {
		if v["id"] == id {
			return v
		}
	}
	return nil
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
		return withID(n.variations, id) != nil
	}
	for _, share := range list(serve["rollout"]) {
		if withID(n.variations, share.(object)["variationId"]) == nil {
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

// evaluate has the results of Flag.Evaluate. The string is the attribute that a split lacks.
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
	served := n.served[environment]
	r.HasRules = len(served.rules) > 0
	for _, rule := range served.rules {
		all := true
		for _, c := range list(rule["conditions"]) {
			all = all && naiveHolds(c.(object), key, attributes)
		}
		if all {
			r.Reason, r.RuleID = RuleMatch, text(rule["id"])
			return served.serve(r, rule["serve"].(object), text(rule["salt"]), key, attributes)
		}
	}
	r.Reason = Fallthrough
	if served.rest != nil {
		return served.serve(r, served.rest, text(n.created["salt"]), key, attributes)
	}
	weighed := object{"rollout": []any{}}
	for _, v := range n.variations {
		weighed["rollout"] = append(weighed["rollout"].([]any), object{"variationId": v["id"], "weight": v["weight"]})
	}
	if total(weighed["rollout"]) > 0 {
		return naiveTargeting{variations: n.variations}.serve(r, weighed, text(n.created["salt"]), key, attributes)
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

func (t naiveTargeting) serve(r Result, serve object, salt, key string, attributes object) (Result, string) {
	if value, ok := serve["value"]; ok {
		r.Value = json.RawMessage(spelt(value))
		return r, ""
	}
	served := withID(t.variations, serve["variationId"])
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
				served = withID(t.variations, share.(object)["variationId"])
				break
			}
			left -= thousandths(share)
		}
		r.Split = true
	}
	r.Value, r.VariationID, r.VariationName = json.RawMessage(spelt(served["value"])), text(served["id"]), text(served["name"])
	return r, ""
}
