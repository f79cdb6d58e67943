package eventstore

import (
	"strconv"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// createdCodec adds a creation time to events that the server sends without one, which would crash the client. It
// serves all gRPC of the process, and leaves other messages unchanged.
type createdCodec struct{ encoding.CodecV2 }

func init() { //nolint:gochecknoinits // gRPC takes codecs during initialization only, and the client has no option for one
	encoding.RegisterCodecV2(createdCodec{encoding.GetCodecV2(proto.Name)})
}

func (c createdCodec) Unmarshal(data mem.BufferSlice, v any) error {
	if err := c.CodecV2.Unmarshal(data, v); err != nil {
		return err
	}
	if response, ok := v.(*streams.ReadResp); ok {
		complete(response.GetEvent().GetEvent())
		complete(response.GetEvent().GetLink())
	}
	return nil
}

func complete(e *streams.ReadResp_ReadEvent_RecordedEvent) {
	if e == nil {
		return
	}
	if _, err := strconv.ParseInt(e.Metadata["created"], 10, 64); err == nil {
		return
	}
	if e.Metadata == nil {
		e.Metadata = map[string]string{}
	}
	e.Metadata["created"] = "0"
}
