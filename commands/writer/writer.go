// Package writer carries out commands: it folds the state of a stream, has the command decide, and appends the facts.
package writer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/events/state"
)

// Writer carries out commands on a store. It caches the states of recently used streams, and runs one command of a
// Stream at a time.
type Writer struct {
	// Timeout limits a command, including the waits for its stream and for read models: five seconds, in tests more.
	Timeout time.Duration

	store  events.Store
	await  Await
	quotas Quotas
	now    func() time.Time

	states   *states // nil without a cache
	streams  *gate
	tenants  *gate
	folds    *gate
	counting *gate // serializes exact counts
	reserved reservations
}

// Await waits until this node's snapshot and the read models of the named facts, or prefixes such as "flag.", have
// reached a position. It returns false if that takes too long.
type Await func(ctx context.Context, position events.Position, names []string) bool

// NoWait is the Await of a writer whose changes are not read at once.
func NoWait(context.Context, events.Position, []string) bool { return true }

// tenantCommands limits a tenant's concurrent commands on a node, not counting the wait for read models.
const tenantCommands = 16

// maxStreamHold limits how long a command holds its stream after its change, while it waits until the change can be
// read. So writers of one stream adapt to the pace of its read models.
const maxStreamHold = 50 * time.Millisecond

// After a command, a contended stream cools down for streamCooldownFactor times the command's duration, so that one
// hot flag cannot monopolize the store.
const streamCooldownFactor = 3

// NewWriter returns a writer on a store. now returns the time of events.
func NewWriter(store events.Store, await Await, quotas Quotas, now func() time.Time) *Writer {
	return &Writer{
		Timeout:  writeTimeout,
		store:    store,
		await:    await,
		quotas:   quotas,
		now:      now,
		states:   newStates(maxStates),
		streams:  newCooldownGate(streamCooldownFactor),
		tenants:  newGate(tenantCommands),
		folds:    newGate(1),
		counting: newGate(1),
		reserved: reservations{things: map[string]*reserved{}},
	}
}

// By identifies the actor and the request of a command. It becomes the metadata of its events.
type By struct {
	Actor         events.Actor
	RequestID     string
	CorrelationID string
	Reason        string
	// ReasonRequired are the environments in which a change of a flag is refused, as the request has no reason.
	ReasonRequired []events.EnvironmentRef
	Once           *Once // nil if the request has no Idempotency-Key
	// Pause, if set, is called before a command waits for its stream, and resume afterwards: it frees the request's
	// slot meanwhile.
	Pause func() (resume func(context.Context) error)
}

// metadata returns the metadata of events at a time.
func (by By) metadata(at time.Time) events.Metadata {
	return events.Metadata{
		Time: at.UTC().
			Truncate(time.Millisecond),
		Actor:         by.Actor,
		RequestID:     by.RequestID,
		CorrelationID: by.CorrelationID,
		Reason:        by.Reason,
	}
}

// anonymous is a command whose facts have an actor other than the person who makes the request.
type anonymous interface{ Actor() events.Actor }

// of returns the metadata of a command's facts.
func (by By) of(cmd any) By {
	if c, ok := cmd.(anonymous); ok {
		by.Actor = c.Actor()
	}
	return by
}

// BySystem returns the By of work without a person or a client. part names the component.
func BySystem(part string) By {
	return By{Actor: events.Actor{Kind: events.SystemActor, ID: part}}
}

// ByService returns the By of the service itself.
func ByService() By { return BySystem("flagledger") }

// Done is the result of a command.
type Done struct {
	Position events.Position // of its last event; zero if nothing changed
	Revision events.Revision // of its last event; zero if nothing changed
	Stale    bool            // the read models do not show it yet
	Repeated bool            // an earlier attempt of the request did it
}

const writeTimeout = 5 * time.Second

// Do carries out a command and returns the resulting state, which is shared and must not be changed. Errors are
// *commands.Error, TooMany if it waited too long for its stream or tenant.
//
// It decides from the cached state. If that refuses, changes nothing or loses a race, it decides again from the
// current stream. A refusal waits until its reason can be read. A retried request is not decided again.
func Do[S any, P state.State[S]](ctx context.Context, w *Writer, by By, cmd commands.Command[S]) (S, Done, error) {
	ctx, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	leave, err := w.enterStream(ctx, by, cmd.Tenant(), cmd.Stream())
	if err != nil {
		var s S
		return s, Done{}, err
	}
	defer leave()
	s, did, err := carryOut[S, P](ctx, w, by, cmd)
	if did.changed {
		timer := time.AfterFunc(maxStreamHold, leave)
		defer timer.Stop()
	} else {
		leave()
	}
	done := Done{Stale: did.last.revision > 0 && !w.await(ctx, did.last.position, did.names), Repeated: did.repeated}
	if did.changed || did.repeated {
		done.Position, done.Revision = did.last.position, did.last.revision
	}
	return s, done, err
}

// outcome is the outcome of a command. last is zero if there is nothing to wait for.
type outcome struct {
	last     lastEvent
	names    []string // of the facts to wait for
	changed  bool
	repeated bool
}

func carryOut[S any, P state.State[S]](
	ctx context.Context, w *Writer, by By, cmd commands.Command[S],
) (s S, did outcome, err error) {
	stream := cmd.Stream()
	leave, err := w.enterTenant(ctx, cmd.Tenant())
	if err != nil {
		return s, did, err
	}
	defer leave()
	limits := w.quotas.Limits(cmd.Tenant())
	var retry storeRetry
	ids, mayBeRepeated := by.Once.eventIDs(stream, commands.StoredName(cmd)), by.Once.MaybeRetry()
	s, last, fromMemory := fromCache[S](w, stream) // may lack other nodes' latest events
	for {
		var found bool
		switch {
		case mayBeRepeated:
			fromMemory = false
			s, last, found, err = search[S, P](ctx, w, &retry, stream, cmd.Tenant(), ids)
		case !fromMemory:
			s, last, err = load[S, P](ctx, w, &retry, stream, cmd.Tenant())
		}
		if err != nil {
			return s, did, err
		}
		if found {
			return s, outcome{last: last, names: last.factPrefixes(), repeated: true}, nil
		}
		if err := mayChange(cmd, limits); err != nil {
			return s, outcome{last: last, names: last.factPrefixes()}, err
		}
		facts, err := decideWithReason(by, cmd, s)
		if err != nil || len(facts) == 0 {
			if fromMemory {
				fromMemory = false
				continue
			}
			return s, outcome{last: last, names: last.factPrefixes()}, err
		}
		batch := batchOf(facts, ids, by.of(cmd).metadata(w.now()))
		release, err := w.reserveBytes(ctx, cmd, cmd.Tenant(), limits, commands.Growth(&s, facts))
		if err != nil {
			return s, outcome{last: last, names: last.factPrefixes()}, err
		}
		appended, err := w.store.Append(ctx, stream, last.revision, batch)
		for err != nil && retry.wait(ctx, err) {
			mayBeRepeated = ids != nil
			appended, err = w.store.Append(ctx, stream, last.revision, batch)
		}
		release()
		if errors.Is(err, events.ErrConflict) {
			fromMemory = false
			continue
		}
		if err != nil {
			return s, did, notAppended(err)
		}
		s, did = applyBatch[S, P](s, stream, last, appended, batch)
		w.quotas.Wrote(cmd.Tenant(), encodedBytes(batch)+pastBytes(&s, facts))
		cacheState[S, P](w, stream, s, did.last)
		return s, did, nil
	}
}

// applyBatch returns the state after a batch that was appended after the event last.
func applyBatch[S any, P state.State[S]](
	s S, stream string, last lastEvent, appended events.Appended, batch []events.Event,
) (S, outcome) {
	s = P(&s).Clone()
	did := outcome{last: last, changed: true}
	for i, e := range batch {
		r := events.Recorded{
			Event:    e,
			Stream:   stream,
			Position: appended.Position,
			Revision: did.last.revision + 1,
			Name:     e.Fact.StoredName(),
			At:       appended.Recorded[i],
		}
		P(&s).Apply(r)
		did.last = lastEventOf(r)
		did.names = append(did.names, r.Name)
	}
	return s, did
}

// notAppended returns the refusal of an append, or an internal error.
func notAppended(err error) error {
	if errors.Is(err, events.ErrTooLarge) {
		wrong := commands.FieldErrors{}
		wrong.Check(false, "body", "the change is too large: it may take %d bytes", events.MaxEventBytes)
		return wrong.Err()
	}
	return unavailable(err)
}

// enterStream waits for a command's stream, so that its commands run one at a time and do not lose races. It refuses a
// Stream of another tenant without waiting.
func (w *Writer) enterStream(ctx context.Context, by By, tenant, stream string) (leave func(), err error) {
	leave, err = w.streams.enterYielding(ctx, streamKey(tenant, stream), by.Pause)
	if err != nil {
		return nil, errBusy(1, "other changes of the same resource are under way")
	}
	return sync.OnceFunc(leave), nil
}

func streamKey(tenant, stream string) string { return tenant + " " + stream }

// enterTenant waits until the tenant has fewer than tenantCommands under way.
func (w *Writer) enterTenant(ctx context.Context, tenant string) (leave func(), err error) {
	if tenant == "" {
		return func() {}, nil
	}
	leave, err = w.tenants.enter(ctx, tenant)
	if err != nil {
		return nil, errBusy(tenantCommands, fmt.Sprintf("%d changes of the tenant are made at once", tenantCommands))
	}
	return leave, nil
}

// enterFold waits until no other stream is folded from its beginning for the same tenant, creator of free tenants or,
// without a tenant, stream: a long one occupies one of the store's few connections.
func (w *Writer) enterFold(ctx context.Context, tenant, stream string) (leave func(), err error) {
	if tenant != "" {
		tenant = cmp.Or(w.quotas.Limits(tenant).Creator, tenant)
	}
	leave, err = w.folds.enter(ctx, cmp.Or(tenant, stream))
	if err != nil {
		return nil, errBusy(1, "long histories are read for other changes that count together with this one")
	}
	return leave, nil
}

// bypassesGuard marks a command that runs in a tenant that accepts no changes.
type bypassesGuard interface{ BypassesGuard() }

// mayChange returns why a tenant's command is refused, or nil.
func mayChange(cmd any, limits TenantLimits) error {
	if _, bypasses := cmd.(bypassesGuard); bypasses {
		return nil
	}
	return limits.Refusal
}

// MayChange returns why a tenant takes no changes now, or nil.
func (w *Writer) MayChange(tenantID string) error { return w.quotas.Limits(tenantID).Refusal }

// Now returns the time of events.
func (w *Writer) Now() time.Time { return w.now() }

// batchOf makes events of facts, with ids of the request if it has some.
func batchOf(facts []events.Fact, ids func(i int) uuid.UUID, metadata events.Metadata) []events.Event {
	batch := make([]events.Event, len(facts))
	for i, fact := range facts {
		id := uuid.Must(uuid.NewV7())
		if ids != nil {
			id = ids(i)
		}
		batch[i] = events.Event{ID: id, Metadata: metadata, Fact: fact}
	}
	return batch
}

// Check decides a command as Do would, without appending: it returns the current state and the refusal as an
// *commands.Error. It does not refuse what the request did before.
func Check[S any, P state.State[S]](ctx context.Context, w *Writer, by By, cmd commands.Command[S]) (s S, err error) {
	ctx, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	var last lastEvent
	var found bool
	if by.Once.MaybeRetry() {
		s, last, found, err = search[S, P](ctx, w, &storeRetry{}, cmd.Stream(), cmd.Tenant(),
			by.Once.peekEventIDs(cmd.Stream(), commands.StoredName(cmd)))
	} else {
		s, last, err = load[S, P](ctx, w, &storeRetry{}, cmd.Stream(), cmd.Tenant())
	}
	if err != nil || found {
		return s, err
	}
	if err := mayChange(cmd, w.quotas.Limits(cmd.Tenant())); err != nil {
		return s, err
	}
	if _, err = decideWithReason(by, cmd, s); err != nil && last.revision > 0 {
		w.await(ctx, last.position, last.factPrefixes())
	}
	return s, err
}

// Find returns what Do would return for a request that was carried out before, and changes nothing. found is false if
// it was not, or has no Idempotency-Key. Errors are *commands.Error.
func Find[S any, P state.State[S]](
	ctx context.Context, w *Writer, by By, cmd commands.Command[S],
) (s S, done Done, found bool, err error) {
	if !by.Once.MaybeRetry() {
		return s, Done{}, false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	s, last, found, err := search[S, P](ctx, w, &storeRetry{}, cmd.Stream(), cmd.Tenant(),
		by.Once.peekEventIDs(cmd.Stream(), commands.StoredName(cmd)))
	if err != nil || !found {
		return s, Done{}, false, err
	}
	return s, Done{
		Position: last.position,
		Revision: last.revision,
		Stale:    !w.await(ctx, last.position, last.factPrefixes()),
		Repeated: true,
	}, true, nil
}

// factPrefixes returns the prefix of the names of the stream's facts.
func (m lastEvent) factPrefixes() []string {
	kind, _, _ := strings.Cut(m.name, ".")
	return []string{kind + "."}
}

func unavailable(err error) error {
	if errors.Is(err, events.ErrDiskFull) {
		return &commands.Error{
			Kind:   commands.Unavailable,
			Detail: "the disk of the event store is full; the change may or may not have been made",
			Err:    err,
		}
	}
	if errors.Is(err, events.ErrUnavailable) {
		return &commands.Error{
			Kind:   commands.Unavailable,
			Detail: "the event store cannot be reached; the change may or may not have been made",
			Err:    err,
		}
	}
	return err
}

// SessionsEnded announces to all nodes which sessions have ended at the identity provider. It is idempotent.
func (w *Writer) SessionsEnded(ctx context.Context, ended commands.EndSessions) error {
	_, _, err := Do(ctx, w, BySystem("identity provider"), ended)
	return err
}
