package remote

import (
	"cmp"
	"context"
	"iter"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/wakebell/wakebell/internal/gateway"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/recurring"
)

var scheduleOperations = []grpc.MethodDesc{
	operation(exportRecurring), operation(importRecurring), operation(backfillRecurring),
}

// Schedules stores and inspects the recurring schedules of a System in another
// process. Its methods are those of recurring.Schedules.
type Schedules struct{ client *Client }

var _ recurring.Operator = (*Schedules)(nil)

// Schedules are those of the System.
func (c *Client) Schedules() *Schedules { return &Schedules{c} }

// Put is that of recurring.Schedules, for up to 1,000 schedules.
func (s *Schedules) Put(ctx context.Context, schedules ...recurring.Schedule) error {
	request := &messages.PutRecurring{}
	for _, r := range schedules {
		m, err := gateway.RecurringMessage(r)
		if err != nil {
			return err
		}
		request.Schedules = append(request.Schedules, m)
	}
	return s.change(ctx, request)
}

func (s *Schedules) change(ctx context.Context, request messages.Request) error {
	_, err := call[*messages.RecurringChanged](ctx, s.client, request)
	return err
}

// Delete is that of recurring.Schedules.
func (s *Schedules) Delete(ctx context.Context, name string) error {
	return s.change(ctx, &messages.DeleteRecurring{Name: name})
}

// Pause is that of recurring.Schedules.
func (s *Schedules) Pause(ctx context.Context, name string) error {
	return s.change(ctx, &messages.EnableRecurring{Name: name})
}

// Resume is that of recurring.Schedules.
func (s *Schedules) Resume(ctx context.Context, name string) error {
	return s.change(ctx, &messages.EnableRecurring{Name: name, Enabled: true})
}

// RunNow is that of recurring.Schedules. When the link breaks it is asked for again,
// and fires once.
func (s *Schedules) RunNow(ctx context.Context, name string) (recurring.Run, error) {
	run, err := call[*messages.RecurringRun](ctx, s.client, &messages.RunRecurring{Name: name, Key: onceKey(ctx)})
	if err != nil {
		return recurring.Run{}, err
	}
	return recurring.Run{
		Name: run.GetName(), Due: instantOf(run.GetDue()), Fired: instantOf(run.GetFired()), Number: run.GetRun(),
	}, nil
}

// Get is that of recurring.Schedules.
func (s *Schedules) Get(ctx context.Context, name string) (recurring.State, error) {
	state, err := call[*messages.RecurringState](ctx, s.client, &messages.GetRecurring{Name: name})
	if err != nil {
		return recurring.State{}, err
	}
	return gateway.RecurringState(state), nil
}

// List is that of recurring.Schedules.
func (s *Schedules) List(ctx context.Context) iter.Seq2[recurring.State, error] {
	return func(yield func(recurring.State, error) bool) {
		seen := map[string]bool{}
		for request := (&messages.ListRecurring{}); ; {
			page, err := call[*messages.RecurringPage](ctx, s.client, request)
			if err != nil {
				yield(recurring.State{}, err)
				return
			}
			for _, state := range page.GetSchedules() {
				if !seen[state.GetName()] && !yield(gateway.RecurringState(state), nil) {
					return
				}
				seen[state.GetName()] = true
			}
			if page.GetNext() == "" {
				return
			}
			request = &messages.ListRecurring{After: page.GetNext()}
		}
	}
}

// Preview is that of recurring.Schedules.
func (s *Schedules) Preview(ctx context.Context, name string, n int) ([]time.Time, error) {
	if n < 0 {
		return nil, invalid("n", "%d, want 0 to 10,000", n)
	}
	answer, err := call[*messages.RecurringInstants](ctx, s.client, &messages.PreviewRecurring{Name: name, Count: uint32(min(n, 1<<30))}) //nolint:gosec // bounded
	if err != nil {
		return nil, err
	}
	instants := make([]time.Time, len(answer.GetInstants()))
	for i, at := range answer.GetInstants() {
		instants[i] = instantOf(at)
	}
	return instants, nil
}

func exportRecurring(ctx context.Context, o *operations, m *messages.ExportRecurring) (*messages.RecurringDump, error) {
	d, err := o.client().Schedules().Export(ctx, m.GetName())
	return dumpMessage(d), err
}

// Export is that of recurring.Schedules.
func (s *Schedules) Export(ctx context.Context, name string) (recurring.Dump, error) {
	answer, err := operate[messages.RecurringDump](ctx, s.client, &messages.ExportRecurring{Name: name})
	if err != nil {
		return recurring.Dump{}, err
	}
	return dumpOf(answer), nil
}

func importRecurring(ctx context.Context, o *operations, m *messages.ImportRecurring) (*messages.RecurringChanged, error) {
	return &messages.RecurringChanged{}, o.client().Schedules().Import(ctx, dumpOf(m.GetSchedule()))
}

// Import is that of recurring.Schedules.
func (s *Schedules) Import(ctx context.Context, d recurring.Dump) error {
	_, err := operate[messages.RecurringChanged](ctx, s.client, &messages.ImportRecurring{Schedule: dumpMessage(d)})
	return err
}

func dumpMessage(d recurring.Dump) *messages.RecurringDump {
	return &messages.RecurringDump{Name: d.Name, Definition: d.Definition, Meta: d.Meta, Wakebell: d.Wakebell}
}

func dumpOf(m *messages.RecurringDump) recurring.Dump {
	return recurring.Dump{
		Name: m.GetName(), Definition: m.GetDefinition(), Meta: m.GetMeta(), Wakebell: m.GetWakebell(),
	}
}

func backfillRecurring(ctx context.Context, o *operations, m *messages.BackfillRecurring) (*messages.RecurringBackfilled, error) {
	for _, at := range []*timestamppb.Timestamp{m.GetFrom(), m.GetTo()} {
		if err := at.CheckValid(); err != nil {
			return nil, invalid("from, to", "%v", err)
		}
	}
	if len(m.GetKey()) > maxKey {
		return nil, invalid("key", "%d bytes, at most %d", len(m.GetKey()), maxKey)
	}
	ctx = messages.WithOnce(ctx, m.GetKey())
	n, err := o.client().Schedules().Backfill(ctx, m.GetName(), m.GetFrom().AsTime(), m.GetTo().AsTime())
	return &messages.RecurringBackfilled{Count: count(n)}, err
}

// maxKey bounds a key, in bytes.
const maxKey = 256

// onceKey is the key of a call that is to be done once, however often it is sent:
// that of WithKey, or one of its own.
func onceKey(ctx context.Context) string {
	return cmp.Or(keyOf(ctx), uuid.NewString())
}

// Backfill is that of recurring.Schedules. After an error it counts none. When the
// link breaks it is asked for again, and fires each instant once.
func (s *Schedules) Backfill(ctx context.Context, name string, from, to time.Time) (int, error) {
	answer, err := operate[messages.RecurringBackfilled](ctx, s.client, &messages.BackfillRecurring{
		Name: name, From: timestamppb.New(from), To: timestamppb.New(to), Key: onceKey(ctx),
	})
	return int(answer.GetCount()), err
}
