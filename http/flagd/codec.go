package flagd

import (
	"errors"

	v1 "buf.build/gen/go/open-feature/flagd/protocolbuffers/go/flagd/sync/v1"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// message is an encoded message, whose bytes many streams share.
type message []byte

// encode encodes a document. The messages of SyncFlags and FetchAllFlags have it in the same field.
func encode(document []byte) (message, error) {
	return proto.Marshal(&v1.SyncFlagsResponse{FlagConfiguration: string(document)})
}

// codec is gRPC's, with messages that are encoded already.
type codec struct{}

var errNoMessage = errors.New("it is no message of protobuf")

// Marshal implements encoding.CodecV2.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	switch v := v.(type) {
	case message:
		return mem.BufferSlice{mem.SliceBuffer(v)}, nil
	case proto.Message:
		text, err := proto.Marshal(v)
		return mem.BufferSlice{mem.SliceBuffer(text)}, err
	default:
		return nil, errNoMessage
	}
}

// Unmarshal implements encoding.CodecV2.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(proto.Message)
	if !ok {
		return errNoMessage
	}
	return proto.Unmarshal(data.Materialize(), m)
}

// Name implements encoding.CodecV2.
func (codec) Name() string { return "proto" }
