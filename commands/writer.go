// Package commands decides what may happen: a command names a stream and turns what is known of it into facts, or
// refuses.
package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"flagledger/events"
)

// Command is a decision about one stream with the state S. It is plain data that can be stored as JSON, and deciding is
// pure: time and new ids are fields of it.
type Command[S any] interface {
	stream() string
	// tenant is the id of the tenant whose share of the node the command takes; empty where it is about a person or the
	// platform.
	tenant() string
	// decide does not change the state, which is shared.
	decide(state S) ([]events.Fact, error)
}

// State is what a command decides from.
type State[S any] interface {
	*S
	// evolve takes in one event and never fails: what happened, happened.
	evolve(events.Recorded)
	// clone returns a copy that shares nothing with the state that evolve changes.
	clone() S
	// size is about how many bytes the state takes.
	size() int
}

// Writer carries out commands on a store. It keeps the states of the streams that were used last, and carries out one
// command of a stream at a time.
type Writer struct {
	store events.Store
	await Await

	// Guard, if set, tells why a tenant takes no changes, nil where it does. Commands that are exempt do not ask it.
	Guard func(tenantID string) error
	// TenantFlagBytes tells how many bytes the flags of a tenant have in the snapshot, and how many they may have: see
	// events.FlagBytesAfter. A new Writer has no bound.
	TenantFlagBytes func(tenantID string) (used, bound int)
	// UnpaidCreator tells who created a tenant that pays nothing; it is empty for a tenant that is paid for, and of a new
	// Writer for any.
	UnpaidCreator func(tenantID string) string
	// UnpaidFlagBytes tells the same as TenantFlagBytes of all tenants together that a person created and pays nothing
	// for.
	UnpaidFlagBytes func(creator string) (used, bound int)
	now             func() time.Time

	states   *states // nil where none are kept
	streams  *gate
	tenants  *gate
	folds    *gate
	counting *gate // who counts exactly, one at a time
	admitted admitted
	written  written
}

// Await waits until the snapshot of this node, and the read models that show facts of the given stored names or
// prefixes such as "flag.", hold a position. It returns false where that takes too long.
type Await func(ctx context.Context, position events.Position, names []string) bool

// NoWait is the Await of a writer whose changes nobody reads at once.
func NoWait(context.Context, events.Position, []string) bool { return true }

// tenantCommands is how many commands of a tenant a node carries out at once, the wait for what shows a change not
// counted.
const tenantCommands = 16

// maxStreamHold is the longest that a command holds its stream after its change, while it waits until that can be read.
// So writers of one stream go at the pace of its read models.
const maxStreamHold = 50 * time.Millisecond

// streamCooldownFactor is for how many times as long as a command took its stream rests if others wait for it: so many
// writers of one flag do not keep the store, the read models and the processors busy without a break, for which every
// change of others would wait.
const streamCooldownFactor = 3

// NewWriter returns a writer on a store. now tells the time of events.
func NewWriter(store events.Store, await Await, now func() time.Time) *Writer {
	return &Writer{
		store:           store,
		await:           await,
		now:             now,
		states:          newStates(maxStates),
		streams:         newRestingGate(streamCooldownFactor),
		tenants:         newGate(tenantCommands),
		folds:           newGate(1),
		counting:        newGate(1),
		admitted:        admitted{things: map[string]*growing{}},
		TenantFlagBytes: func(string) (used, bound int) { return 0, math.MaxInt },
		UnpaidCreator:   func(string) string { return "" },
		UnpaidFlagBytes: func(string) (used, bound int) { return 0, math.MaxInt },
	}
}

// By says on whose behalf a command runs, and for which request. It becomes the metadata of its events.
type By struct {
	Actor         events.Actor
	RequestID     string
	CorrelationID string
	Reason        string
	Once          *Once // nil where the request is not repeated
	// Pause, if set, is called before a command waits for others of its stream, and resume after that: what the request
	// holds of the node is others' meanwhile.
	Pause func() (resume func(context.Context) error)
}

// metadata is that of events of a time.
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

// anonymous is a command whose facts name another actor than the person who makes the request.
type anonymous interface{ actor() events.Actor }

// of returns the metadata of a command's facts.
func (by By) of(cmd any) By {
	if c, ok := cmd.(anonymous); ok {
		by.Actor = c.actor()
	}
	return by
}

// BySystem is what no person and no machine has asked for. part names what does it.
func BySystem(part string) By {
	return By{Actor: events.Actor{Kind: events.SystemActor, ID: part}}
}

// ByService is what the service does by itself.
func ByService() By { return BySystem("flagledger") }

// Done tells what became of a command.
type Done struct {
	Position events.Position // of its last event; zero where there was nothing to do
	Revision events.Revision // likewise
	Stale    bool            // the read models do not show it yet
	Repeated bool            // the request had done it already when it was made before
}

// writeTimeout is the longest that a command takes, the wait for its stream and for what shows it included.
const writeTimeout = 5 * time.Second

// Do carries out a command and returns the state that it leaves, which is shared and must not be changed.
//
// It decides from the state that the Writer keeps. Where that refuses, changes nothing or loses a race, it decides
// again from the stream as it is now. Also a refusal is told only once what made it so can be read: another caller may
// have done that just now. What the request did when it was made before is not decided again.
//
// Its errors are *Error, TooMany if it waited for its stream or its tenant for 5 s.
func Do[S any, P State[S]](ctx context.Context, w *Writer, by By, cmd Command[S]) (S, Done, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	leave, err := w.enterStream(ctx, by, cmd.tenant(), cmd.stream())
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

// outcome is what carrying out a command came to. last is the zero mark where there is nothing to wait for.
type outcome struct {
	last     mark
	names    []string // of the facts to wait for
	changed  bool
	repeated bool
}

func carryOut[S any, P State[S]](ctx context.Context, w *Writer, by By, cmd Command[S]) (s S, did outcome, err error) {
	stream := cmd.stream()
	leave, err := w.enterTenant(ctx, cmd.tenant())
	if err != nil {
		return s, did, err
	}
	defer leave()
	var retry storeRetry
	ids, mayBeRepeated := by.Once.eventIDs(stream, storedName(cmd)), by.Once.MaybeRetry()
	s, last, fromMemory := kept[S](w, stream) // what other nodes have appended since is not read yet
	for {
		var found bool
		switch {
		case mayBeRepeated:
			fromMemory = false
			s, last, found, err = search[S, P](ctx, w, &retry, stream, cmd.tenant(), ids)
		case !fromMemory:
			s, last, err = load[S, P](ctx, w, &retry, stream, cmd.tenant())
		}
		if err != nil {
			return s, did, err
		}
		if found {
			return s, outcome{last: last, names: last.factPrefixes(), repeated: true}, nil
		}
		if err := w.mayChange(cmd, cmd.tenant()); err != nil {
			return s, outcome{last: last, names: last.factPrefixes()}, err
		}
		facts, err := cmd.decide(s)
		if err != nil || len(facts) == 0 {
			if fromMemory {
				fromMemory = false
				continue
			}
			return s, outcome{last: last, names: last.factPrefixes()}, err
		}
		batch := batchOf(facts, ids, by.of(cmd).metadata(w.now()))
		release, err := w.reserveBytes(ctx, cmd, cmd.tenant(), flagGrowth(&s, facts))
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
		s, did = evolved[S, P](s, stream, last, appended, batch)
		w.NoteWritten(cmd.tenant(), encodedBytes(batch)+pastBytes(&s, facts))
		keep[S, P](w, stream, s, did.last)
		return s, did, nil
	}
}

// evolved is the state that a batch leaves, which was appended after the event last.
func evolved[S any, P State[S]](
	s S, stream string, last mark, appended events.Appended, batch []events.Event,
) (S, outcome) {
	s = P(&s).clone()
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
		P(&s).evolve(r)
		did.last = markOf(r)
		did.names = append(did.names, r.Name)
	}
	return s, did
}

// notAppended is why a change was not appended, as an *Error where that is no fault of the service.
func notAppended(err error) error {
	if errors.Is(err, events.ErrTooLarge) {
		wrong := fields{}
		wrong.check(false, "body", "the change is too large: it may take %d bytes", events.MaxEventBytes)
		return wrong.err()
	}
	return unavailable(err)
}

// enterStream waits for a command's stream: one command of it is carried out at a time, so that none loses a race to
// another. A tenant that names a stream of another is refused without having kept anybody waiting.
func (w *Writer) enterStream(ctx context.Context, by By, tenant, stream string) (leave func(), err error) {
	leave, err = w.streams.enterPausing(ctx, streamKey(tenant, stream), by.Pause)
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

// enterFold waits until no other stream is read from its beginning for the same tenant, creator of unpaid tenants or,
// without a tenant, stream: a long one keeps one of the store's few connections.
func (w *Writer) enterFold(ctx context.Context, tenant, stream string) (leave func(), err error) {
	if tenant != "" {
		tenant = cmp.Or(w.UnpaidCreator(tenant), tenant)
	}
	leave, err = w.folds.enter(ctx, cmp.Or(tenant, stream))
	if err != nil {
		return nil, errBusy(1, "long histories are read for other changes that count together with this one")
	}
	return leave, nil
}

// bypassesGuard is a command that is carried out whatever the Guard says.
type bypassesGuard interface{ bypassesGuard() }

// mayChange tells why a command is refused for its tenant, nil where it is not.
func (w *Writer) mayChange(cmd any, tenantID string) error {
	if _, isExempt := cmd.(bypassesGuard); isExempt || tenantID == "" || w.Guard == nil {
		return nil
	}
	return w.Guard(tenantID)
}

// batchOf makes events of facts, with ids of the request where it has some.
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

// Check decides a command as Do would and appends nothing: it returns the state as it is, and why the command would be
// refused, as an *Error. What the request has done before is not refused.
func Check[S any, P State[S]](ctx context.Context, w *Writer, by By, cmd Command[S]) (s S, err error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	var last mark
	var found bool
	if by.Once.MaybeRetry() {
		s, last, found, err = search[S, P](ctx, w, &storeRetry{}, cmd.stream(), cmd.tenant(),
			by.Once.peekEventIDs(cmd.stream(), storedName(cmd)))
	} else {
		s, last, err = load[S, P](ctx, w, &storeRetry{}, cmd.stream(), cmd.tenant())
	}
	if err != nil || found {
		return s, err
	}
	if err := w.mayChange(cmd, cmd.tenant()); err != nil {
		return s, err
	}
	if _, err = cmd.decide(s); err != nil && last.revision > 0 {
		w.await(ctx, last.position, last.factPrefixes())
	}
	return s, err
}

// Find returns what Do would return for a command that the request carried out when it was made before, and changes
// nothing. found is false where it did not, or has no Idempotency-Key; errors are *Error.
func Find[S any, P State[S]](
	ctx context.Context, w *Writer, by By, cmd Command[S],
) (s S, done Done, found bool, err error) {
	if !by.Once.MaybeRetry() {
		return s, Done{}, false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	s, last, found, err := search[S, P](ctx, w, &storeRetry{}, cmd.stream(), cmd.tenant(),
		by.Once.peekEventIDs(cmd.stream(), storedName(cmd)))
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

// factPrefixes are what the names of the facts of the event's stream begin with: one.
func (m mark) factPrefixes() []string {
	kind, _, _ := strings.Cut(m.name, ".")
	return []string{kind + "."}
}

func unavailable(err error) error {
	if errors.Is(err, events.ErrDiskFull) {
		return &Error{
			Kind:   Unavailable,
			Detail: "the disk of the event store is full; the change may or may not have been made",
			Err:    err,
		}
	}
	if errors.Is(err, events.ErrUnavailable) {
		return &Error{
			Kind:   Unavailable,
			Detail: "the event store cannot be reached; the change may or may not have been made",
			Err:    err,
		}
	}
	return err
}
