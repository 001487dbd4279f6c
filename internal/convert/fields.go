package convert

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
)

// Timestamp returns t, or nil if t is zero.
func Timestamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// Time is the inverse of Timestamp.
func Time(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}

// Count returns n as a field of a message, bounded to 0 and 2^31.
func Count(n int) uint32 { return uint32(min(max(n, 0), 1<<31)) }

// Number converts a count, or -1 for one that is off, to a field of a message.
func Number(n int) int32 { return int32(min(max(n, -1), 1<<31-1)) }
