package reminder

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/convert"
)

// When is the instant of a one-time reminder. In and At make one; the zero value
// is invalid.
type When struct {
	in  time.Duration
	at  time.Time
	set bool
	err error
}

// In is d after Redis stored the reminder, by Redis's clock. A negative d is due
// at once.
func In(d time.Duration) When { return When{in: max(d, 0), set: true} }

// At is the instant t, rounded up to the microsecond. A t in the past is due at
// once; the zero Time is invalid.
func At(t time.Time) When {
	if t.IsZero() {
		return When{err: argument.Invalid("At", "zero time")}
	}
	return When{at: t, set: true}
}

func (w When) validate() error {
	if w.err == nil && !w.set {
		return argument.Invalid("when", "it is empty; want In or At")
	}
	return w.err
}

func whenAt(t *timestamppb.Timestamp) When {
	at, err := convert.Instant("at", t)
	if err != nil {
		return When{err: err}
	}
	return At(at)
}

func whenIn(d *durationpb.Duration) When {
	span := d.AsDuration()
	switch {
	case d == nil:
		return When{err: argument.Invalid("in", "absent")}
	case d.CheckValid() != nil, durationpb.New(span).GetSeconds() != d.GetSeconds():
		return When{err: argument.Invalid("in", "%d s and %d ns, want a duration of at most 292 years", d.GetSeconds(), d.GetNanos())}
	}
	return In(span)
}
