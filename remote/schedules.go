package remote

import (
	"cmp"
	"context"
	"iter"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/internal/outgoing"
	"github.com/wakebell/wakebell/internal/paging"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/rpc"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/remote/internal/wire"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Schedules stores and inspects the recurring schedules of a System in another
// process. It has the methods of recurring.Schedules.
type Schedules struct{ client *Client }

var _ recurring.Operator = (*Schedules)(nil)

// Schedules returns the recurring schedules of the System.
func (c *Client) Schedules() *Schedules { return &Schedules{c} }

// Put does what recurring.Schedules.Put does, for up to 1,000 schedules.
func (s *Schedules) Put(ctx context.Context, schedules ...recurring.Schedule) error {
	requests := make([]recurringRequest, len(schedules))
	for i, r := range schedules {
		var err error
		if requests[i].Recurring, err = convert.RecurringMessage(r); err != nil {
			return err
		}
	}
	edge := s.client.cfg.edge
	return outgoing.Each(ctx, edge, "put", requests, (*recurringRequest).outgoing, (*recurringRequest).apply, func(ctx context.Context, requests []recurringRequest) error {
		put := &messages.PutRecurringRequest{Trace: edge.Tracer.Inject(ctx)}
		for _, r := range requests {
			put.Schedules = append(put.Schedules, r.Recurring)
		}
		_, err := call[*messages.PutRecurringResponse](ctx, s.client, put)
		return err
	})
}

// Delete does what recurring.Schedules.Delete does.
func (s *Schedules) Delete(ctx context.Context, name string) error {
	_, err := call[*messages.DeleteRecurringResponse](ctx, s.client, &messages.DeleteRecurringRequest{Name: name})
	return err
}

// Pause does what recurring.Schedules.Pause does.
func (s *Schedules) Pause(ctx context.Context, name string) error {
	return s.enable(ctx, name, false)
}

// Resume does what recurring.Schedules.Resume does.
func (s *Schedules) Resume(ctx context.Context, name string) error {
	return s.enable(ctx, name, true)
}

func (s *Schedules) enable(ctx context.Context, name string, enabled bool) error {
	_, err := call[*messages.EnableRecurringResponse](ctx, s.client, &messages.EnableRecurringRequest{Name: name, Enabled: enabled})
	return err
}

// RunNow does what recurring.Schedules.RunNow does. If the link breaks, the request
// is repeated with an idempotency key (that of WithKey, or one of its own), so the
// schedule fires once.
func (s *Schedules) RunNow(ctx context.Context, name string) (recurring.Run, error) {
	run, err := call[*messages.RunRecurringResponse](ctx, s.client, &messages.RunRecurringRequest{Name: name, Key: onceKey(ctx), Trace: s.client.cfg.edge.Tracer.Inject(ctx)})
	if err != nil {
		return recurring.Run{}, err
	}
	return recurring.Run{
		Name: run.GetName(), Due: convert.Time(run.GetDue()), Fired: convert.Time(run.GetFired()), Number: run.GetRun(),
	}, nil
}

// Get does what recurring.Schedules.Get does.
func (s *Schedules) Get(ctx context.Context, name string) (recurring.State, error) {
	answer, err := call[*messages.GetRecurringResponse](ctx, s.client, &messages.GetRecurringRequest{Name: name})
	if err != nil {
		return recurring.State{}, err
	}
	return convert.RecurringState(answer.GetSchedule()), nil
}

// List does what recurring.Schedules.List does. Each page of a request reads all
// names.
func (s *Schedules) List(ctx context.Context, p wakebelltype.Page) iter.Seq2[recurring.State, error] {
	return paging.All(p, func(after string, limit int) ([]recurring.State, string, error) {
		answer, err := call[*messages.ListRecurringResponse](ctx, s.client, &messages.ListRecurringRequest{After: after, Limit: convert.Count(limit)})
		if err != nil {
			return nil, "", err
		}
		page := make([]recurring.State, len(answer.GetSchedules()))
		for i, m := range answer.GetSchedules() {
			page[i] = convert.RecurringState(m)
			page[i].Cursor = page[i].Name
		}
		return page, answer.GetNext(), nil
	})
}

// Preview does what recurring.Schedules.Preview does.
func (s *Schedules) Preview(ctx context.Context, name string, n int) ([]time.Time, error) {
	if n < 0 {
		return nil, argument.Invalid("n", "%d, want 0 to 10,000", n)
	}
	answer, err := call[*messages.PreviewRecurringResponse](ctx, s.client, &messages.PreviewRecurringRequest{Name: name, Count: uint32(min(n, 1<<30))}) //nolint:gosec // bounded
	if err != nil {
		return nil, err
	}
	instants := make([]time.Time, len(answer.GetInstants()))
	for i, at := range answer.GetInstants() {
		instants[i] = convert.Time(at)
	}
	return instants, nil
}

// Export does what recurring.Schedules.Export does.
func (s *Schedules) Export(ctx context.Context, name string) (recurring.Dump, error) {
	answer, err := operate(ctx, s.client, rpc.OperationsClient.ExportRecurring, &messages.ExportRecurringRequest{Name: name})
	if err != nil {
		return recurring.Dump{}, err
	}
	return wire.DumpOf(answer.GetSchedule()), nil
}

// Import does what recurring.Schedules.Import does.
func (s *Schedules) Import(ctx context.Context, d recurring.Dump) error {
	_, err := operate(ctx, s.client, rpc.OperationsClient.ImportRecurring, &messages.ImportRecurringRequest{Schedule: wire.DumpMessage(d)})
	return err
}

// onceKey returns the idempotency key of a call that must be carried out once,
// however often it is sent: that of WithKey, or a new one.
func onceKey(ctx context.Context) string {
	return cmp.Or(keyOf(ctx), uuid.NewString())
}

// Instants does what recurring.Schedules.Instants does.
func (s *Schedules) Instants(ctx context.Context, name string, from, to time.Time) ([]time.Time, error) {
	answer, err := operate(ctx, s.client, rpc.OperationsClient.ListRecurringInstants, &messages.ListRecurringInstantsRequest{
		Name: name, From: timestamppb.New(from), To: timestamppb.New(to),
	})
	if err != nil {
		return nil, err
	}
	instants := make([]time.Time, len(answer.GetInstants()))
	for i, at := range answer.GetInstants() {
		instants[i] = convert.Time(at)
	}
	return instants, nil
}

// Backfill does what recurring.Schedules.Backfill does, but returns 0 with an
// error. If the link breaks, the request is repeated with an idempotency key (that
// of WithKey, or one of its own), so each instant fires once.
func (s *Schedules) Backfill(ctx context.Context, name string, from, to time.Time) (int, error) {
	answer, err := operate(ctx, s.client, rpc.OperationsClient.BackfillRecurring, &messages.BackfillRecurringRequest{
		Name: name, From: timestamppb.New(from), To: timestamppb.New(to), Key: onceKey(ctx),
	})
	return int(answer.GetCount()), err
}
