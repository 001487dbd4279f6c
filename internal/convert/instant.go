package convert

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/wakebell/wakebell/internal/argument"
)

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
