package client

import (
	"encoding/json"
	"strings"
	"time"
)

// brief shortens a value for a column.
func brief(value []byte) string {
	const most = 60
	if runes := []rune(string(value)); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return string(value)
}

// values joins the values of a condition.
func values(list []json.RawMessage) string {
	texts := make([]string, len(list))
	for i, value := range list {
		texts[i] = string(value)
	}
	return brief([]byte(strings.Join(texts, ", ")))
}

// condition is a condition in words.
func condition(attribute, op string, list []json.RawMessage, negate bool) string {
	text := strings.TrimSpace(attribute + " " + op + " " + values(list))
	if negate {
		return "not " + text
	}
	return text
}

// conditions joins the conditions of a rule.
func conditions(list []ConditionBody) string {
	texts := make([]string, len(list))
	for i, c := range list {
		texts[i] = condition(text(c.Attribute), c.Op, c.Values, c.Negate)
	}
	return strings.Join(texts, " and ")
}

func instant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// text returns what p points to, or nothing.
func text(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}
