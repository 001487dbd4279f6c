package remote

import (
	"cmp"
	"context"
	"iter"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/rpc"
)

// Schedules keeps the recurring schedules of a System in another process; each
// call is that of wakebell.Schedules.
type Schedules struct{ client *Client }

var _ wakebell.RecurringSchedules = (*Schedules)(nil)

// Schedules are those of the System.
func (c *Client) Schedules() *Schedules { return &Schedules{c} }

// Put is that of wakebell.Schedules, for up to 1,000 schedules.
func (s *Schedules) Put(ctx context.Context, schedules ...wakebell.Recurring) error {
	request := &messages.PutRecurringRequest{}
	for _, r := range schedules {
		m, err := wakebell.RecurringMessage(r)
		if err != nil {
			return err
		}
		request.Schedules = append(request.Schedules, m)
	}
	_, err := call[*messages.PutRecurringResponse](ctx, s.client, request)
	return err
}

// Delete is that of wakebell.Schedules.
func (s *Schedules) Delete(ctx context.Context, name string) error {
	_, err := call[*messages.DeleteRecurringResponse](ctx, s.client, &messages.DeleteRecurringRequest{Name: name})
	return err
}

// Pause is that of wakebell.Schedules.
func (s *Schedules) Pause(ctx context.Context, name string) error {
	return s.enable(ctx, name, false)
}

// Resume is that of wakebell.Schedules.
func (s *Schedules) Resume(ctx context.Context, name string) error {
	return s.enable(ctx, name, true)
}

func (s *Schedules) enable(ctx context.Context, name string, enabled bool) error {
	_, err := call[*messages.EnableRecurringResponse](ctx, s.client, &messages.EnableRecurringRequest{Name: name, Enabled: enabled})
	return err
}

// RunNow is that of wakebell.Schedules. When the link breaks it is asked for again,
// and fires once.
func (s *Schedules) RunNow(ctx context.Context, name string) (wakebell.ScheduleRun, error) {
	run, err := call[*messages.RunRecurringResponse](ctx, s.client, &messages.RunRecurringRequest{Name: name, Key: onceKey(ctx)})
	if err != nil {
		return wakebell.ScheduleRun{}, err
	}
	return wakebell.ScheduleRun{
		Name: run.GetName(), Due: instantOf(run.GetDue()), Fired: instantOf(run.GetFired()), Run: run.GetRun(),
	}, nil
}

// Get is that of wakebell.Schedules.
func (s *Schedules) Get(ctx context.Context, name string) (wakebell.RecurringState, error) {
	answer, err := call[*messages.GetRecurringResponse](ctx, s.client, &messages.GetRecurringRequest{Name: name})
	if err != nil {
		return wakebell.RecurringState{}, err
	}
	return wakebell.RecurringStateOf(answer.GetSchedule()), nil
}

// List is that of wakebell.Schedules.
func (s *Schedules) List(ctx context.Context) iter.Seq2[wakebell.RecurringState, error] {
	return func(yield func(wakebell.RecurringState, error) bool) {
		seen := map[string]bool{}
		for request := (&messages.ListRecurringRequest{}); ; {
			page, err := call[*messages.ListRecurringResponse](ctx, s.client, request)
			if err != nil {
				yield(wakebell.RecurringState{}, err)
				return
			}
			for _, state := range page.GetSchedules() {
				if !seen[state.GetName()] && !yield(wakebell.RecurringStateOf(state), nil) {
					return
				}
				seen[state.GetName()] = true
			}
			if page.GetNext() == "" {
				return
			}
			request = &messages.ListRecurringRequest{After: page.GetNext()}
		}
	}
}

// Preview is that of wakebell.Schedules.
func (s *Schedules) Preview(ctx context.Context, name string, n int) ([]time.Time, error) {
	if n < 0 {
		return nil, invalid("n", "%d, want 0 to 10,000", n)
	}
	answer, err := call[*messages.PreviewRecurringResponse](ctx, s.client, &messages.PreviewRecurringRequest{Name: name, Count: uint32(min(n, 1<<30))}) //nolint:gosec // bounded
	if err != nil {
		return nil, err
	}
	instants := make([]time.Time, len(answer.GetInstants()))
	for i, at := range answer.GetInstants() {
		instants[i] = instantOf(at)
	}
	return instants, nil
}

func (o *operations) ExportRecurring(ctx context.Context, m *messages.ExportRecurringRequest) (*messages.ExportRecurringResponse, error) {
	d, err := o.client().Schedules().Export(ctx, m.GetName())
	return &messages.ExportRecurringResponse{Schedule: dumpMessage(d)}, err
}

// Export is that of wakebell.Schedules.
func (s *Schedules) Export(ctx context.Context, name string) (wakebell.ScheduleDump, error) {
	answer, err := operate(ctx, s.client, rpc.OperationsClient.ExportRecurring, &messages.ExportRecurringRequest{Name: name})
	if err != nil {
		return wakebell.ScheduleDump{}, err
	}
	return dumpOf(answer.GetSchedule()), nil
}

func (o *operations) ImportRecurring(ctx context.Context, m *messages.ImportRecurringRequest) (*messages.ImportRecurringResponse, error) {
	return &messages.ImportRecurringResponse{}, o.client().Schedules().Import(ctx, dumpOf(m.GetSchedule()))
}

// Import is that of wakebell.Schedules.
func (s *Schedules) Import(ctx context.Context, d wakebell.ScheduleDump) error {
	_, err := operate(ctx, s.client, rpc.OperationsClient.ImportRecurring, &messages.ImportRecurringRequest{Schedule: dumpMessage(d)})
	return err
}

func dumpMessage(d wakebell.ScheduleDump) *messages.RecurringDump {
	return &messages.RecurringDump{Name: d.Name, Definition: d.Definition, Meta: d.Meta, Wakebell: d.Wakebell}
}

func dumpOf(m *messages.RecurringDump) wakebell.ScheduleDump {
	return wakebell.ScheduleDump{
		Name: m.GetName(), Definition: m.GetDefinition(), Meta: m.GetMeta(), Wakebell: m.GetWakebell(),
	}
}

func (o *operations) BackfillRecurring(ctx context.Context, m *messages.BackfillRecurringRequest) (*messages.BackfillRecurringResponse, error) {
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
	return &messages.BackfillRecurringResponse{Count: count(n)}, err
}

// maxKey bounds a key, in bytes.
const maxKey = 256

// onceKey is the key of a call that is to be done once, however often it is sent:
// that of WithKey, or one of its own.
func onceKey(ctx context.Context) string {
	return cmp.Or(keyOf(ctx), uuid.NewString())
}

// Backfill is that of wakebell.Schedules. After an error it counts none. When the
// link breaks it is asked for again, and fires each instant once.
func (s *Schedules) Backfill(ctx context.Context, name string, from, to time.Time) (int, error) {
	answer, err := operate(ctx, s.client, rpc.OperationsClient.BackfillRecurring, &messages.BackfillRecurringRequest{
		Name: name, From: timestamppb.New(from), To: timestamppb.New(to), Key: onceKey(ctx),
	})
	return int(answer.GetCount()), err
}
