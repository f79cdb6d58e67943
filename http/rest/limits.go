package rest

import (
	"fmt"
	"slices"

	"flagledger/commands/keep/idempotency"
	"flagledger/events"
	"flagledger/http/quota"
	"flagledger/http/strictjson"
)

// ListLimits lists the limits of all operations.
func ListLimits() []events.Limit {
	return slices.Concat(requestLimits(), fieldLimits(), concurrencyLimits(), rateLimits())
}

// ConcurrencyLimit returns a limit of what a node does at once.
func ConcurrencyLimit(name, value, per string, status int, beyond string) events.Limit {
	return events.Limit{
		Group: events.ConcurrencyLimits, Name: name, Value: value, Per: per, Nodes: events.EachNode, Status: status,
		Beyond: beyond,
	}
}

func requestLimits() []events.Limit {
	of, size, period, count := events.RequestLimit, events.SizeText, events.PeriodText, events.CountText
	return []events.Limit{
		of("the headers", fmt.Sprintf("%s in %s", size(MaxHeader), period(ReadHeaderTimeout)), 431, ""),
		of("a request", period(ReadTimeout), 0, "the connection is closed"),
		of("a body", size(maxBody), 400, ""),
		of("a form, or a body that the operation does not use", size(maxSmallBody), 400, ""),
		of("the next "+size(LargeBody)+" of a larger body", period(pieceTimeout), 400, ""),
		of("nesting of JSON", count(strictjson.MaxDepth)+" levels", 400, ""),
		of("fields that a refusal names", count(maxNamedFields), 0, "further ones are left out"),
		of("the JSON Patch of a comparison", size(smallPatch)+", or that of what it makes", 0, "it replaces all"),
		of("reading an answer", period(AnswerTimeout), 0, "the connection is closed"),
		of("an unused connection", period(IdleTimeout), 0, "the connection is closed"),
		of("an answer to an Idempotency-Key is repeated", period(idempotency.TTL), 0, "the call is made again"),
	}
}

func fieldLimits() []events.Limit {
	return []events.Limit{
		events.FieldLimit(maxLimit, "", 422, "limit"),
		events.FieldLimit(maxSearch, events.UnitCharacters, 422, "q"),
		events.FieldLimit(maxCursor, events.UnitCharacters, 422, "cursor"),
		events.FieldLimit(maxKey, events.UnitCharacters, 422, "Idempotency-Key"),
		events.FieldLimit(maxReason, events.UnitCharacters, 422, reasonHeader),
		events.FieldLimit(MaxCorrelation, events.UnitCharacters, 400, "X-Correlation-ID"),
	}
}

// The limits that huma enforces by the tags of inputs. A test compares the OpenAPI document with them.
const (
	maxLimit  = 1000
	maxSearch = 200
	maxCursor = 20
)

func concurrencyLimits() []events.Limit {
	// What depends on the machine is in words, and so is not asked of the queues.
	q := newQueues(1, QueueTimeout)
	queue := func(name string, queue *quota.Queue, atOnce string) events.Limit {
		l := queue.Limits()
		if atOnce == "" {
			atOnce = fmt.Sprintf("%d, %d of a tenant", l.Slots, l.FlowSlots)
		}
		return ConcurrencyLimit(name, fmt.Sprintf("%s; %s wait", atOnce, events.CountText(l.FlowWaiting)),
			quota.PerTenantOrCreator, 429, "or 503")
	}
	return []events.Limit{
		ConcurrencyLimit("unread answers", fmt.Sprintf("%d, fewer if others leave many", maxUnread/(unreadShare+1)),
			"person, machines of a tenant, "+quota.PerSite, 429, ""),
		ConcurrencyLimit("a wait in a queue below", events.PeriodText(QueueTimeout), "request", 429,
			"503 if others are in the way"),
		ConcurrencyLimit("requests that wait in a queue", fmt.Sprintf("%s (memory %s)", events.CountText(nodeWaiting),
			events.CountText(memoryWaiting)),
			"queue", 503, ""),
		queue("queue for processors", q.CPU,
			"½ of the cores or 2, half of a tenant"),
		queue("queue for the database", q.Database,
			"½ of the pool, ¼ of a tenant"),
		queue("queue for memory, such as bodies over "+events.SizeText(LargeBody), q.Memory, ""),
		ConcurrencyLimit("queue: hashing of passwords", fmt.Sprintf("½ of the cores, ¼ of a network; %d wait",
			hashingWaiting),
			quota.PerWide, 429, "or 503"),
	}
}

func rateLimits() []events.Limit {
	return []events.Limit{{
		Group: events.RateLimits, Name: "plans looked at for a person's requests", Max: maxPlans, Unit: "tenants",
		Per: "person", Beyond: "further tenants do not count",
	}}
}
