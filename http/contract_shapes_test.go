package http_test

import (
	"math"
	"testing"
	"time"

	"flagledger/events"
)

// A shape states the type of each member of an answer: a type name, a shape, a list of one shape, or an object whose
// members share a shape. An answer may have more members.
type (
	shape map[string]any
	list1 []any          // a list with at least one entry, all of this shape
	mapOf map[string]any // an object whose members have this shape
)

var (
	success   = shape{"success": "boolean"}
	flagShape = shape{
		"id":               "string",
		"key":              "string",
		"name":             "string",
		"type":             "string",
		"enabled":          "boolean",
		"defaultValue":     "any",
		"description":      "string",
		"tags":             list1{"string"},
		"projectId":        "string or null",
		"permanent":        "boolean",
		"owner":            "string or null",
		"links":            "any",
		"offServes":        "string",
		"status":           "string",
		"createdAt":        "time",
		"updatedAt":        "time",
		"lastEvaluatedAt":  "time or null",
		"lastPrefetchedAt": "time or null",
		"lastRequiredAt":   "time or null",
		"lifecycle":        "string",
		"inProcess":        shape{"supported": "boolean", "reason": "string or null"},
	}
	variation    = shape{"id": "string", "name": "string", "value": "any", "description": "string", "weight": "number"}
	historyShape = shape{
		"id":        "string",
		"action":    "string",
		"changes":   mapOf{"": shape{"from": "any", "to": "any"}},
		"userId":    "string",
		"userName":  "string",
		"timestamp": "time",
	}
	evaluationShape = shape{"enabled": "boolean", "value": "any", "reason": "string"}
	projectShape    = shape{
		"id":          "string",
		"name":        "string",
		"description": "string",
		"color":       "string",
		"flagCount":   "integer",
		"createdAt":   "time",
		"updatedAt":   "time",
	}
	tenantShape = shape{
		"id":           "string",
		"name":         "string",
		"primaryEmail": "string",
		"contactName":  "string",
		"isSandbox":    "boolean",
		"subscription": shape{"plan": "string", "status": "string"},
		"createdAt":    "time",
	}
	memberShape = shape{
		"userId":         "string",
		"email":          "string",
		"displayName":    "string",
		"role":           "string",
		"lastAccessedAt": "time or null",
		"createdAt":      "time",
	}
	newClient = shape{
		"clientId":     "string",
		"clientSecret": "string",
		"name":         "string",
		"scopes":       list1{"string"},
		"createdAt":    "time",
	}
	tourShape = shape{
		"completed":    "boolean",
		"completed_at": "time or null",
		"created_at":   "time or null",
		"updated_at":   "time or null",
	}
	deviceShape = shape{
		"deviceToken": "string",
		"deviceName":  "string",
		"deviceType":  "string",
		"createdAt":   "time",
		"lastSeenAt":  "time",
	}
	tokenShape   = shape{"access_token": "string", "token_type": "string", "expires_in": "integer", "scope": "string"}
	sessionShape = shape{
		"token":        "string",
		"refreshToken": "string",
		"expiresIn":    "integer",
		"user":         shape{"id": "string", "email": "string", "displayName": "string", "role": "string"},
	}
	membership = shape{"tenant_id": "string", "tenant_name": "string", "role": "string"}
	bootstrap  = shape{"success": "boolean", "message": "string", "data": shape{
		"user": shape{
			"uid":       "string",
			"email":     "string",
			"tenant_id": "string",
			"role":      "string",
		},
		"subscription": shape{"plan": "string", "status": "string", "billingCycle": "string or null"},
		"tenants": list1{
			membership,
		},
		"active_tenant_id":    "string",
		"active_tenant_role":  "string",
		"canonical_tenant_id": "string",
		"canonical_role":      "string",
	}}
	userShape = shape{
		"userId":         "string",
		"email":          "string",
		"displayName":    "string",
		"role":           "string or null",
		"active":         "boolean",
		"createdAt":      "time",
		"lastAccessedAt": "time or null",
		"tenants":        list1{membership},
	}
	invitationShape = shape{
		"id":        "string",
		"email":     "string",
		"role":      "string",
		"status":    "string",
		"invitedBy": "string",
		"createdAt": "time",
		"expiresAt": "time",
	}
	usageShape        = shape{"flags": "integer", "evaluations": "integer", "users": "integer"}
	notificationShape = shape{
		"id":          "string",
		"type":        "string",
		"title":       "string",
		"body":        "string",
		"icon":        "string",
		"actionType":  "string",
		"referenceId": "string",
		"data":        mapOf{"": "string"},
		"read":        "boolean",
		"readAt":      "time or null",
		"createdAt":   "time",
	}
	ownTenant      = merged(tenantShape, shape{"role": "string"})
	platformTenant = merged(tenantShape, shape{"usage": usageShape, "active": "boolean"})
)

func merged(shapes ...shape) shape {
	all := shape{}
	for _, s := range shapes {
		for name, want := range s {
			all[name] = want
		}
	}
	return all
}

// hasShape checks that a value has a shape.
func hasShape(t *testing.T, at string, got, want any) {
	t.Helper()
	switch want := want.(type) {
	case shape:
		o, ok := got.(map[string]any)
		if !ok {
			t.Errorf("%s is no object: %v", at, got)
			return
		}
		for name, inner := range want {
			if value, there := o[name]; !there {
				t.Errorf("%s has no member %s: %v", at, name, got)
			} else {
				hasShape(t, at+"."+name, value, inner)
			}
		}
	case mapOf:
		o, ok := got.(map[string]any)
		if !ok || len(o) == 0 {
			t.Errorf("%s is no object with members: %v", at, got)
		}
		for name, value := range o {
			hasShape(t, at+"."+name, value, want[""])
		}
	case list1:
		l, ok := got.([]any)
		if !ok || len(l) == 0 {
			t.Errorf("%s is no list with entries: %v", at, got)
		}
		for _, value := range l {
			hasShape(t, at+"[]", value, want[0])
		}
	case string:
		if !hasType(got, want) {
			t.Errorf("%s is no %s: %v", at, want, got)
		}
	default:
		t.Fatalf("%s has no shape that the test knows: %v", at, want)
	}
}

func hasType(got any, want string) bool {
	text, isText := got.(string)
	switch want {
	case "any":
		return true
	case "empty list":
		l, ok := got.([]any)
		return ok && len(l) == 0
	case "boolean":
		_, ok := got.(bool)
		return ok
	case "number":
		_, ok := got.(float64)
		return ok
	case "integer":
		number, ok := got.(float64)
		return ok && number == math.Trunc(number)
	case "string":
		return isText
	case "string or null":
		return isText || got == nil
	case "time", "time or null": // ISO 8601 in UTC
		_, err := time.Parse("2006-01-02T15:04:05.000Z", text)
		if err != nil {
			_, err = time.Parse(events.RecordedFormat, text)
		}
		return isText && err == nil || got == nil && want == "time or null"
	default:
		return false
	}
}
