package remote

import (
	"errors"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// maxParts bounds the strings, byte strings and messages in a frame. An empty
// message takes two bytes on the wire and a hundred in memory, so a bound in
// bytes alone would let a frame of 8 MiB become a gigabyte.
const maxParts = 200_000

var errTooManyParts = errors.New("a frame with too many parts")

// frames is protobuf as gRPC speaks it, with that bound.
type frames struct {
	plain int // bytes of a message that is for no call of ours; 0: no bound
}

var errTooLarge = errors.New("a message that is too large for this service")

// counted is where a message goes whose bytes are counted.
type counted interface {
	// arrived counts the bytes, and returns the message that they are.
	arrived(bytes int) proto.Message
}

func (frames) Name() string { return "proto" }

func (frames) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, errNoMessage
	}
	data, err := proto.Marshal(m)
	if err != nil {
		return nil, err
	}
	return mem.BufferSlice{mem.SliceBuffer(data)}, nil
}

var errNoMessage = errors.New("not a protobuf message")

func (f frames) Unmarshal(data mem.BufferSlice, v any) error {
	if r, ok := v.(counted); ok {
		v = r.arrived(data.Len())
	} else if f.plain > 0 && data.Len() > f.plain {
		return errTooLarge
	}
	m, ok := v.(proto.Message)
	if !ok {
		return errNoMessage
	}
	whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer whole.Free()
	budget := maxParts
	if err := countParts(whole.ReadOnlyData(), m.ProtoReflect().Descriptor(), &budget); err != nil {
		return err
	}
	return proto.Unmarshal(whole.ReadOnlyData(), m)
}

// countParts takes the parts of an encoded message from the budget. What is no
// protobuf is left to the decoder to refuse.
func countParts(data []byte, of protoreflect.MessageDescriptor, budget *int) error {
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
				if err := countParts(inner, f.Message(), budget); err != nil {
					return err
				}
			}
		}
		data = data[size:]
	}
	return nil
}
