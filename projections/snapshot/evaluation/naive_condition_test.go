package evaluation

import (
	"encoding/json"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"time"
)

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
	s = strings.ToUpper(s)
	t, err := time.Parse(time.RFC3339, s)
	return t, err == nil && rfc3339.MatchString(s)
}

// semver is the expression that semver.org suggests.
var semver = regexp.MustCompile(
	`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?$`,
)

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
