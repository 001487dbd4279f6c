// Package gateway converts the values of the public packages to the messages of
// the gateway, and back.
package gateway

import (
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/wakebell/wakebell/internal/argument"
)

// Timestamp converts an instant; the zero Time becomes nil.
func Timestamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// Time converts a timestamp; nil becomes the zero Time.
func Time(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}

// Instant converts the timestamp of a required field.
func Instant(field string, t *timestamppb.Timestamp) (time.Time, error) {
	switch {
	case t == nil:
		return time.Time{}, argument.Invalid(field, "absent")
	case t.CheckValid() != nil:
		return time.Time{}, argument.Invalid(field, "%d s and %d ns, want an instant of the years 1 to 9999", t.GetSeconds(), t.GetNanos())
	}
	return t.AsTime(), nil
}

// Count converts a count; a negative one becomes 0.
func Count(n int) uint32 { return uint32(min(max(n, 0), 1<<31)) } //nolint:gosec // bounded

// Text converts a text, which protobuf requires to be UTF-8: invalid bytes are
// replaced.
func Text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
