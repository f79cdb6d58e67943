package esdbtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const maxAppendSize = 1 << 20 // of the data of one append, the default of real servers

// streamsService implements the calls on streams.
type streamsService struct {
	streams.UnimplementedStreamsServer
	s *Server
}

// Append implements streams.StreamsServer. It reads the whole request before it refuses: the client would take an
// earlier response for a broken connection.
func (v streamsService) Append(call streams.Streams_AppendServer) error {
	var options *streams.AppendReq_Options
	var list []proposed
	size := 0
	for {
		req, err := call.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if o := req.GetOptions(); o != nil {
			options = o
			continue
		}
		p := req.GetProposedMessage()
		size += len(p.GetData())
		list = append(
			list,
			proposed{
				id:       fromUUID(p.GetId()),
				metadata: maps.Clone(p.GetMetadata()),
				custom:   p.GetCustomMetadata(),
				data:     p.GetData(),
			},
		)
	}
	if options == nil || len(list) == 0 {
		return status.Error(codes.InvalidArgument, "an append needs options and events")
	}
	if size > maxAppendSize {
		call.SetTrailer(
			metadata.Pairs("exception", "maximum-append-size-exceeded", "maximum-append-size", fmt.Sprint(maxAppendSize)),
		)
		return status.Errorf(codes.InvalidArgument, "Maximum Append Size of %d Exceeded.", maxAppendSize)
	}
	expected, err := fromExpected(options)
	if err != nil {
		return err
	}
	name := string(options.GetStreamIdentifier().GetStreamName())
	if err := v.s.faults.hold(call.Context(), name); err != nil {
		return err
	}
	if err := v.s.lead(call); err != nil {
		return err
	}
	if v.s.faults.take(false) {
		v.s.Reset()
		return status.Error(codes.Unavailable, "reset")
	}
	o := v.s.log.append(name, expected, list)
	if v.s.faults.take(true) {
		v.s.Reset()
		return status.Error(codes.Unavailable, "reset")
	}
	v.s.faults.mu.Lock()
	refuse, omit := v.s.faults.refuseRepeats && o.repeated, v.s.faults.omitPositions
	v.s.faults.mu.Unlock()
	switch {
	case o.deleted:
		return deleted(call, name)
	case o.last == nil || refuse:
		return call.SendAndClose(
			&streams.AppendResp{
				Result: &streams.AppendResp_WrongExpectedVersion_{WrongExpectedVersion: wrong(options, o.current)},
			},
		)
	}
	success := &streams.AppendResp_Success{
		CurrentRevisionOption: &streams.AppendResp_Success_CurrentRevision{CurrentRevision: o.last.revision},
		PositionOption: &streams.AppendResp_Success_Position{
			Position: &streams.AppendResp_Position{CommitPosition: o.last.commit, PreparePosition: o.last.prepare},
		},
	}
	if omit {
		success.PositionOption = &streams.AppendResp_Success_NoPosition{NoPosition: &shared.Empty{}}
	}
	return call.SendAndClose(&streams.AppendResp{Result: &streams.AppendResp_Success_{Success: success}})
}

func fromExpected(o *streams.AppendReq_Options) (expectation, error) {
	switch e := o.GetExpectedStreamRevision().(type) {
	case *streams.AppendReq_Options_Revision:
		return expectation{kind: exact, revision: e.Revision}, nil
	case *streams.AppendReq_Options_NoStream:
		return expectation{kind: noStream}, nil
	case *streams.AppendReq_Options_StreamExists:
		return expectation{kind: streamExists}, nil
	case *streams.AppendReq_Options_Any:
		return expectation{kind: anything}, nil
	}
	return expectation{}, status.Error(codes.InvalidArgument, "an append needs an expected revision")
}

// wrong returns the response to an append at the wrong revision, which is no gRPC error.
func wrong(o *streams.AppendReq_Options, current int64) *streams.AppendResp_WrongExpectedVersion {
	w := &streams.AppendResp_WrongExpectedVersion{
		CurrentRevisionOption: &streams.AppendResp_WrongExpectedVersion_CurrentNoStream{CurrentNoStream: &shared.Empty{}},
	}
	if current >= 0 {
		w.CurrentRevisionOption = &streams.AppendResp_WrongExpectedVersion_CurrentRevision{CurrentRevision: uint64(current)}
	}
	switch e := o.GetExpectedStreamRevision().(type) {
	case *streams.AppendReq_Options_Revision:
		w.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedRevision{ExpectedRevision: e.Revision}
	case *streams.AppendReq_Options_StreamExists:
		w.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedStreamExists{
			ExpectedStreamExists: &shared.Empty{},
		}
	default:
		w.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedNoStream{
			ExpectedNoStream: &shared.Empty{},
		}
	}
	return w
}

// deleted returns the error of a call to a stream with a tombstone.
func deleted(call grpc.ServerStream, name string) error {
	call.SetTrailer(metadata.Pairs("exception", "stream-deleted", "stream-name", name))
	return status.Errorf(codes.FailedPrecondition, "Event stream '%s' is deleted.", name)
}

// Delete implements streams.StreamsServer: it hides the stream's events, and later appends may follow. It ignores the
// expected revision.
func (v streamsService) Delete(_ context.Context, req *streams.DeleteReq) (*streams.DeleteResp, error) {
	v.s.log.delete(string(req.GetOptions().GetStreamIdentifier().GetStreamName()), false)
	return &streams.DeleteResp{
		PositionOption: &streams.DeleteResp_Position_{Position: &streams.DeleteResp_Position{}},
	}, nil
}

// Tombstone implements streams.StreamsServer. It ignores the expected revision.
func (v streamsService) Tombstone(_ context.Context, req *streams.TombstoneReq) (*streams.TombstoneResp, error) {
	v.s.log.delete(string(req.GetOptions().GetStreamIdentifier().GetStreamName()), true)
	return &streams.TombstoneResp{
		PositionOption: &streams.TombstoneResp_Position_{Position: &streams.TombstoneResp_Position{}},
	}, nil
}

// Read implements streams.StreamsServer: reads of streams and of $all, both ways, and subscriptions to $all.
func (v streamsService) Read(req *streams.ReadReq, call streams.Streams_ReadServer) error {
	o := req.GetOptions()
	_, subscription := o.GetCountOption().(*streams.ReadReq_Options_Subscription)
	switch {
	case subscription && o.GetAll() != nil:
		return v.subscribe(o, call)
	case subscription:
		return status.Error(codes.Unimplemented, "esdbtest has no subscriptions to one stream")
	case o.GetAll() != nil:
		return v.readAll(o, call)
	default:
		return v.readStream(o, call)
	}
}

func (v streamsService) readStream(o *streams.ReadReq_Options, call streams.Streams_ReadServer) error {
	name := string(o.GetStream().GetStreamIdentifier().GetStreamName())
	list, tombstone := v.s.log.stream(name)
	if tombstone {
		return deleted(call, name)
	}
	if len(list) == 0 {
		return call.Send(&streams.ReadResp{Content: &streams.ReadResp_StreamNotFound_{
			StreamNotFound: &streams.ReadResp_StreamNotFound{StreamIdentifier: o.GetStream().GetStreamIdentifier()},
		}})
	}
	backwards := o.GetReadDirection() == streams.ReadReq_Options_Backwards
	revision, given := o.GetStream().GetRevisionOption().(*streams.ReadReq_Options_StreamOptions_Revision)
	_, end := o.GetStream().GetRevisionOption().(*streams.ReadReq_Options_StreamOptions_End)
	switch {
	case given && backwards:
		list = list[:sort.Search(len(list), func(i int) bool { return list[i].revision > revision.Revision })]
	case given:
		list = list[sort.Search(len(list), func(i int) bool { return list[i].revision >= revision.Revision }):]
	case end != backwards: // from the end on, or from the start back
		list = nil
	}
	return v.send(list, backwards, o.GetCount(), call)
}

// readAll reads $all. Backwards from a position, it skips the event at that position, which ends after it.
func (v streamsService) readAll(o *streams.ReadReq_Options, call streams.Streams_ReadServer) error {
	list, _ := v.s.log.all()
	backwards := o.GetReadDirection() == streams.ReadReq_Options_Backwards
	_, end := o.GetAll().GetAllOption().(*streams.ReadReq_Options_AllOptions_End)
	switch p := o.GetAll().GetPosition(); {
	case p != nil && backwards:
		list = list[:firstAt(list, p)]
	case p != nil:
		list = list[firstAt(list, p):]
	case end != backwards:
		list = nil
	}
	return v.send(list, backwards, o.GetCount(), call)
}

// firstAt returns the index of the first record at or after a position.
func firstAt(list []*record, p *streams.ReadReq_Options_Position) int {
	return sort.Search(len(list), func(i int) bool {
		r := list[i]
		return r.commit > p.CommitPosition || r.commit == p.CommitPosition && r.prepare >= p.PreparePosition
	})
}

func (v streamsService) send(list []*record, backwards bool, count uint64, call streams.Streams_ReadServer) error {
	if backwards {
		list = slices.Clone(list)
		slices.Reverse(list)
	}
	for i, r := range list {
		if uint64(i) >= count {
			break
		}
		if err := call.Send(v.event(r)); err != nil {
			return err
		}
	}
	return nil
}

// subscribe follows $all after a position: existing events, then CaughtUp, then new events. With a filter, it sends a
// checkpoint after every window times interval of examined events.
func (v streamsService) subscribe(o *streams.ReadReq_Options, call streams.Streams_ReadServer) error {
	wanted, interval, err := filter(o.GetFilter())
	if err != nil {
		return err
	}
	v.s.faults.mu.Lock()
	dropped, left := v.s.faults.dropped, v.s.faults.dropAfter
	v.s.faults.mu.Unlock()
	if err := call.Send(&streams.ReadResp{Content: &streams.ReadResp_Confirmation{
		Confirmation: &streams.ReadResp_SubscriptionConfirmation{SubscriptionId: uuid.NewString()},
	}}); err != nil {
		return err
	}
	list, _ := v.s.log.all()
	next := 0
	if _, end := o.GetAll().GetAllOption().(*streams.ReadReq_Options_AllOptions_End); end {
		next = len(list)
	} else if p := o.GetAll().GetPosition(); p != nil {
		next = firstAt(list,
			&streams.ReadReq_Options_Position{CommitPosition: p.CommitPosition, PreparePosition: p.PreparePosition + 1})
	}
	caughtUp, looked := false, 0
	for {
		for ; next < len(list); next++ {
			if r := list[next]; wanted(r) {
				if err := call.Send(v.event(r)); err != nil {
					return err
				}
				if left--; left == 0 {
					return status.Error(codes.Unknown, "the subscription was dropped")
				}
			}
			if looked++; interval > 0 && looked%interval == 0 {
				checkpoint := &streams.ReadResp_Checkpoint{CommitPosition: list[next].commit, PreparePosition: list[next].prepare}
				if err := call.Send(&streams.ReadResp{Content: &streams.ReadResp_Checkpoint_{Checkpoint: checkpoint}}); err != nil {
					return err
				}
			}
			select {
			case <-dropped:
				return status.Error(codes.Unknown, "the subscription was dropped")
			default:
			}
		}
		var changed <-chan struct{}
		if list, changed = v.s.log.all(); next < len(list) {
			continue
		}
		if !caughtUp {
			caughtUp = true
			if err := call.Send(
				&streams.ReadResp{Content: &streams.ReadResp_CaughtUp_{CaughtUp: &streams.ReadResp_CaughtUp{}}},
			); err != nil {
				return err
			}
		}
		select {
		case <-changed:
		case <-dropped:
			return status.Error(codes.Unknown, "the subscription was dropped")
		case <-call.Context().Done():
			return call.Context().Err()
		}
	}
}

// filter returns the filter of a subscription and the number of events between checkpoints, 0 for none.
func filter(o *streams.ReadReq_Options_FilterOptions) (wanted func(*record) bool, interval int, err error) {
	if o == nil {
		return func(*record) bool { return true }, 0, nil
	}
	if o.GetCheckpointIntervalMultiplier() == 0 || o.GetMax() == 0 {
		return nil, 0, status.Error(codes.InvalidArgument, "a filter needs a window and an interval of checkpoints")
	}
	expression, subject := o.GetStreamIdentifier(), func(r *record) string { return r.stream }
	if expression == nil {
		expression, subject = o.GetEventType(), func(r *record) string { return r.metadata["type"] }
	}
	interval = int(o.GetMax() * o.GetCheckpointIntervalMultiplier())
	if expression.GetRegex() != "" {
		re, err := regexp.Compile(expression.GetRegex())
		if err != nil {
			return nil, 0, status.Error(codes.InvalidArgument, err.Error())
		}
		return func(r *record) bool { return re.MatchString(subject(r)) }, interval, nil
	}
	return func(r *record) bool {
		return slices.ContainsFunc(expression.GetPrefix(),
			func(prefix string) bool { return strings.HasPrefix(subject(r), prefix) })
	}, interval, nil
}

func (v streamsService) event(r *record) *streams.ReadResp {
	v.s.sent.Add(1)
	v.s.faults.mu.Lock()
	omit := v.s.faults.omitCreated
	v.s.faults.mu.Unlock()
	system := r.metadata
	if omit {
		system = maps.Clone(system)
		delete(system, "created")
	}
	return &streams.ReadResp{Content: &streams.ReadResp_Event{Event: &streams.ReadResp_ReadEvent{
		Event: &streams.ReadResp_ReadEvent_RecordedEvent{
			Id:               toUUID(r.id),
			StreamIdentifier: &shared.StreamIdentifier{StreamName: []byte(r.stream)},
			StreamRevision:   r.revision,
			PreparePosition:  r.prepare,
			CommitPosition:   r.commit,
			Metadata:         system,
			CustomMetadata:   r.custom,
			Data:             r.data,
		},
		Position: &streams.ReadResp_ReadEvent_CommitPosition{CommitPosition: r.commit},
	}}}
}
