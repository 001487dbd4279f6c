package wire

import (
	"errors"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// MaxParts bounds the strings, byte strings and messages in a frame. An empty
// message takes two bytes on the wire and a hundred in memory, so that a bound in
// bytes alone would let a frame of 8 MiB grow to a gigabyte.
const MaxParts = 200_000

// FrameParts bounds the parts of a frame with one command besides those of its request.
const FrameParts = 16

// Countable reports whether a frame with this encoded request alone has few enough parts.
func Countable(request []byte, of protoreflect.MessageDescriptor) bool {
	budget := MaxParts - FrameParts
	return CountParts(request, of, &budget) == nil
}

var errTooManyParts = errors.New("a frame with too many parts")

// Frames is gRPC's protobuf codec, with a bound on the parts of a message.
type Frames struct {
	Plain int // maximum bytes of a message that is not Counted; 0: no bound
}

var errTooLarge = errors.New("a message that is too large for this service")

// Counted wraps a message so that its bytes are counted before it is decoded.
type Counted interface {
	// Arrived counts the bytes and returns the message to decode into.
	Arrived(bytes int) proto.Message
}

// Name implements encoding.CodecV2.
func (Frames) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (Frames) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, ErrNoMessage
	}
	data, err := proto.Marshal(m)
	if err != nil {
		return nil, err
	}
	return mem.BufferSlice{mem.SliceBuffer(data)}, nil
}

// ErrNoMessage is the error for values that are not protobuf messages.
var ErrNoMessage = errors.New("not a protobuf message")

// Unmarshal implements encoding.CodecV2.
func (f Frames) Unmarshal(data mem.BufferSlice, v any) error {
	if r, ok := v.(Counted); ok {
		v = r.Arrived(data.Len())
	} else if f.Plain > 0 && data.Len() > f.Plain {
		return errTooLarge
	}
	m, ok := v.(proto.Message)
	if !ok {
		return ErrNoMessage
	}
	whole := join(data)
	defer whole.Free()
	budget := MaxParts
	if err := CountParts(whole.ReadOnlyData(), m.ProtoReflect().Descriptor(), &budget); err != nil {
		return err
	}
	// Unknown fields are discarded: keeping them would double the memory.
	return proto.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(whole.ReadOnlyData(), m)
}

// maxPooled is the largest buffer, in bytes, that is pooled. gRPC's pool would give a
// message that is a little larger a buffer of 1 MiB.
const maxPooled = 32 << 10

// join returns the bytes of a message in one buffer. It frees the parts of a large
// message while it copies them, so that the message does not take its memory twice.
func join(data mem.BufferSlice) mem.Buffer {
	size := data.Len()
	if size <= maxPooled || len(data) == 1 {
		return data.MaterializeToBuffer(mem.DefaultBufferPool())
	}
	whole := make([]byte, 0, size)
	for i, part := range data {
		whole = append(whole, part.ReadOnlyData()...)
		part.Free()
		data[i] = mem.SliceBuffer(nil) // gRPC frees the slice after the call
	}
	return mem.SliceBuffer(whole)
}

// CountParts subtracts the parts of an encoded message from the budget. The decoder
// rejects data that is not protobuf.
func CountParts(data []byte, of protoreflect.MessageDescriptor, budget *int) error {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return protowire.ParseError(n)
		}
		data = data[n:]
		size := protowire.ConsumeFieldValue(number, kind, data)
		if size < 0 {
			return protowire.ParseError(size)
		}
		if kind == protowire.BytesType {
			if *budget--; *budget < 0 {
				return errTooManyParts
			}
			if f := of.Fields().ByNumber(number); f != nil && f.Message() != nil {
				inner, _ := protowire.ConsumeBytes(data)
				if err := CountParts(inner, f.Message(), budget); err != nil {
					return err
				}
			}
		}
		data = data[size:]
	}
	return nil
}
