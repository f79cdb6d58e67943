package flagd

import (
	"strings"

	"flagledger/events"
)

// logic is an expression of JsonLogic: an operation, a variable, a list of expressions or texts, or a JSON value.
type logic = any

type operation struct {
	name string
	args []logic
}

func op(name string, args ...logic) logic { return operation{name, args} }

// variable is the name of an attribute.
type variable string

// element is the element that `some` looks at.
const element = variable("")

// appendLogic appends an expression as JSON.
func appendLogic(b []byte, l logic) ([]byte, error) {
	switch l := l.(type) {
	case operation:
		b = append(append(append(b, `{"`...), l.name...), `":`...)
		b, err := appendLogic(b, l.args)
		return append(b, '}'), err
	case variable:
		b, err := appendLogic(append(b, `{"var":`...), string(l))
		return append(b, '}'), err
	case []logic:
		b = append(b, '[')
		for i, one := range l {
			if i > 0 {
				b = append(b, ',')
			}
			var err error
			if b, err = appendLogic(b, one); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	default:
		text, err := events.Marshal(l)
		return append(b, text...), err
	}
}

// allOf and anyOf return a single expression without an operator: engines check documents by their depth.
func allOf(all []logic) logic { return joined("and", all) }

func anyOf(all []logic) logic {
	if len(all) == 0 {
		return false
	}
	return joined("or", all)
}

func joined(operator string, all []logic) logic {
	if len(all) == 1 {
		return all[0]
	}
	return op(operator, all...)
}

// Dialect names an engine of flagd whose differences a definition may rely on. DialectOf detects it from the client's
// user agent.
type Dialect int

// The dialects. Strict suits every engine.
const (
	Strict Dialect = iota
	Go             // sem_ver works within `some`
	Node           // refuses 1.2-rc as a version, as Go does; others read it as 1.2.0-rc
	Python         // false and true are the numbers 0 and 1, and a number prints as Python does
)

// DialectOf returns the dialect for the user agent of a gRPC client.
func DialectOf(userAgent string) Dialect {
	switch {
	case strings.Contains(userAgent, "grpc-go/"):
		return Go
	case strings.Contains(userAgent, "grpc-node-js/"):
		return Node
	case strings.Contains(userAgent, "grpc-python"):
		return Python
	default:
		return Strict
	}
}

// isString holds for strings alone. Go's cat fails for booleans and objects, and an object is never === itself there.
func isString(e logic) logic {
	return op("and", op("===", e, e), op("!==", e, true), op("!==", e, false), op("===", e, op("cat", e)))
}

// isNumber holds for numbers alone.
func (d Dialect) isNumber(e logic) logic {
	text := op("cat", e)
	notText := op("!==", e, text)
	switch d {
	case Go:
		return op("and", op("===", e, e), op("!==", e, nil), op("!==", e, true), op("!==", e, false), notText)
	case Python:
		return op("and", isNoArray(e), op("!==", e, nil), notText, op("!", isPythonBoolean(e)),
			op("!==", text, "[object Object]"))
	default:
		return op("and", isNoArray(e), op("!==", e, nil), op("!==", e, true), op("!==", e, false), notText,
			op("!==", text, "[object Object]"))
	}
}

// isNoArray holds for all but arrays: in JavaScript [5] > 3.
func isNoArray(e logic) logic { return op("in", e, op("merge", e)) }

func isPythonBoolean(e logic) logic {
	return op("in", op("cat", e), []string{"true", "True", "false", "False"})
}

// isBoolean holds for one of the booleans.
func (d Dialect) isBoolean(e logic, value bool) logic {
	if d != Python {
		return op("===", e, value)
	}
	texts := []string{"false", "False"}
	if value {
		texts = []string{"true", "True"}
	}
	return op("and", isNoArray(e), op("!==", e, op("cat", e)), op("in", op("cat", e), texts))
}
