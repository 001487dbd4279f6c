package recurring

import (
	"context"
	"iter"
	"time"

	"github.com/wakebell/wakebell/wakebelltype"
)

// Operator stores, inspects and fires recurring schedules. Schedules implements
// it with Redis, the Schedules of package remote through a node.
type Operator interface {
	Put(ctx context.Context, schedules ...Schedule) error
	Get(ctx context.Context, name string) (State, error)
	List(ctx context.Context, p wakebelltype.Page) iter.Seq2[State, error]
	Delete(ctx context.Context, name string) error
	Pause(ctx context.Context, name string) error
	Resume(ctx context.Context, name string) error
	RunNow(ctx context.Context, name string) (Run, error)
	Preview(ctx context.Context, name string, n int) ([]time.Time, error)
	Export(ctx context.Context, name string) (Dump, error)
	Import(ctx context.Context, d Dump) error
	Instants(ctx context.Context, name string, from, to time.Time) ([]time.Time, error)
	Backfill(ctx context.Context, name string, from, to time.Time) (int, error)
}
