package http

import (
	"fmt"

	"flagledger/commands/keep/idempotency"
	"flagledger/events"
	"flagledger/http/quota"
	"flagledger/http/strictjson"
)

// ListLimits lists the limits of this package.
func ListLimits() []events.Limit {
	return append(append(requestLimits(), fieldLimits()...), append(concurrencyLimits(), dailyLimits()...)...)
}

func requestLimits() []events.Limit {
	of := func(name, value, per string, status int, beyond string) events.Limit {
		return events.Limit{
			Group: events.RequestLimits, Name: name, Value: value, Per: per, Status: status, Beyond: beyond,
		}
	}
	size, period, count := events.SizeText, events.PeriodText, events.CountText
	streams := DefaultStreamLimits()
	return []events.Limit{
		of("the headers", fmt.Sprintf("%s in %s", size(maxHeader), period(readHeaderTimeout)), "request", 431, ""),
		of("a request", period(readTimeout), "request", 0, "the connection is closed"),
		of("a body", size(maxBody-1), "request", 400, ""),
		of("a form, or a body that the operation does not use", size(maxSmallBody), "request", 400, ""),
		of("an event of Stripe", size(maxWebhook), "request", 400, ""),
		of("the next "+size(largeBody)+" of a larger body", period(pieceTimeout), "request", 400, ""),
		of("nesting of JSON", count(strictjson.MaxDepth)+" levels", "body", 400, ""),
		of("fields that a refusal names", count(maxNamedFields), "answer", 0, "further ones are left out"),
		of("reading an answer", period(answerTimeout), "answer", 0, "the connection is closed"),
		of("an unused connection", period(idleTimeout), "connection", 0, "it is closed"),
		of("evaluating many flags", period(maxEvaluating), "request", 503, ""),
		of("flags that one call reverts", count(maxRevertsPerCall), "request", 0, "the next call continues"),
		of("an export of the audit trail", period(maxExport), "request", 0, "it ends; continue with `after`"),
		of("an explanation's values", fmt.Sprintf("%s each, %s in all", size(maxActual), size(allActual)), "answer", 0,
			"cut"),
		of("the JSON Patch of a comparison", size(smallPatch)+", or the flag's", "answer", 0, "it replaces the flag"),
		of("flags that an event of a stream names", count(maxNamedFlags), "event", 0, "clients fetch all"),
		of("a stream of changes", period(streams.Life), "stream", 0, "clients connect again"),
		of("an answer to an Idempotency-Key is repeated", period(idempotency.TTL), "key", 0, "the call is made again"),
	}
}

func fieldLimits() []events.Limit {
	of := func(most int, unit string, status int, fields ...string) events.Limit {
		return events.Limit{Group: events.FieldLimits, Fields: fields, Max: most, Unit: unit, Status: status}
	}
	return []events.Limit{
		of(maxFlagKeys, "keys", 422, "flagKeys"),
		of(maxLimit, "", 422, "limit"),
		of(maxNotificationLimit, "(of notifications)", 422, "limit"),
		of(maxSearch, "characters", 422, "q"),
		of(maxCursor, "characters", 422, "cursor"),
		of(maxDiscounts, "", 422, "discounts"),
		of(maxKey, "characters", 422, "Idempotency-Key"),
		of(maxReason, "characters", 422, reasonHeader),
		of(maxCorrelation, "characters", 400, "X-Correlation-ID"),
	}
}

// The limits that huma enforces by the tags of inputs. A test compares the OpenAPI document with them.
const (
	maxLimit             = 1000
	maxNotificationLimit = 100
	maxSearch            = 200
	maxCursor            = 20
	maxDiscounts         = 1
)

func concurrencyLimits() []events.Limit {
	of := func(name, value, per string, status int, beyond string) events.Limit {
		return events.Limit{
			Group: events.ConcurrencyLimits, Name: name, Value: value, Per: per, Nodes: events.EachNode, Status: status,
			Beyond: beyond,
		}
	}
	count := events.CountText
	streams := DefaultStreamLimits()
	// What depends on the machine is in words, and so is not asked of the queues.
	q := newQueues(1, queueTimeout)
	queue := func(name string, queue *quota.Queue, atOnce string) events.Limit {
		l := queue.Limits()
		if atOnce == "" {
			atOnce = fmt.Sprintf("%d, %d of a tenant", l.Slots, l.FlowSlots)
		}
		return of(name, fmt.Sprintf("%s; %s wait", atOnce, count(l.FlowWaiting)), quota.PerTenantOrCreator, 429, "or 503")
	}
	return []events.Limit{
		of("unread answers", fmt.Sprintf("%d, fewer if others leave many", maxUnread/(unreadShare+1)),
			"person, machines of a tenant, "+quota.PerSite, 429, ""),
		of("streams of changes", count(streams.PerTenant), "tenant", 429, ""),
		of("streams of changes", count(streams.PerCreator), quota.PerCreator, 429, ""),
		of("a wait in a queue below", events.PeriodText(queueTimeout), "request", 429, "503 if others are in the way"),
		of("requests that wait in a queue", fmt.Sprintf("%s (memory %s)", count(nodeWaiting), count(memoryWaiting)),
			"queue", 503, ""),
		queue("queue for processors", q.cpu,
			"½ of the cores or 2, half of a tenant"),
		queue("queue for the database", q.database,
			"½ of the pool, ¼ of a tenant"),
		queue("queue for memory, such as bodies over "+events.SizeText(largeBody), q.memory, ""),
		of("queue: hashing of passwords", fmt.Sprintf("½ of the cores, ¼ of a network; %d wait", hashingWaiting),
			quota.PerWide, 429, "or 503"),
	}
}

// dailyLimits lists what tenants and people do in a day.
func dailyLimits() []events.Limit {
	return []events.Limit{
		{
			Group: events.RateLimits, Name: "invitations to the platform", Max: platformInvitationsPerDay, Unit: "a day",
			Per: "platform", Nodes: events.AllNodes, Status: 429,
		},
		{
			Group: events.RateLimits, Name: "plans looked at for a person's requests", Max: maxPlans, Unit: "tenants",
			Per: "person", Beyond: "further tenants do not count",
		},
		{
			Group: events.MemoryLimits, Name: "verified tokens", Max: maxTokens, Nodes: events.EachNode,
			Beyond: "verified again",
		},
	}
}

// ProblemName returns the type of the problem that a status is answered with, empty if it has none.
func ProblemName(status int) string { return kinds[status].name }
