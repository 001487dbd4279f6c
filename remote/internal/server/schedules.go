package server

import (
	"context"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

func (o *operations) ExportRecurring(ctx context.Context, m *messages.ExportRecurringRequest) (*messages.ExportRecurringResponse, error) {
	d, err := o.client().Schedules().Export(ctx, m.GetName())
	return &messages.ExportRecurringResponse{Schedule: wire.DumpMessage(d)}, err
}

func (o *operations) ImportRecurring(ctx context.Context, m *messages.ImportRecurringRequest) (*messages.ImportRecurringResponse, error) {
	return &messages.ImportRecurringResponse{}, o.client().Schedules().Import(ctx, wire.DumpOf(m.GetSchedule()))
}

// interval has a beginning and an end.
type interval interface {
	GetFrom() *timestamppb.Timestamp
	GetTo() *timestamppb.Timestamp
}

func checkInterval(m interval) error {
	for _, at := range []*timestamppb.Timestamp{m.GetFrom(), m.GetTo()} {
		if err := at.CheckValid(); err != nil {
			return argument.Invalid("from, to", "%v", err)
		}
	}
	return nil
}

func (o *operations) ListRecurringInstants(ctx context.Context, m *messages.ListRecurringInstantsRequest) (*messages.ListRecurringInstantsResponse, error) {
	if err := checkInterval(m); err != nil {
		return nil, err
	}
	instants, err := o.client().Schedules().Instants(ctx, m.GetName(), m.GetFrom().AsTime(), m.GetTo().AsTime())
	if err != nil {
		return nil, err
	}
	answer := &messages.ListRecurringInstantsResponse{}
	for _, at := range instants {
		answer.Instants = append(answer.Instants, convert.Timestamp(at))
	}
	return answer, nil
}

func (o *operations) BackfillRecurring(ctx context.Context, m *messages.BackfillRecurringRequest) (*messages.BackfillRecurringResponse, error) {
	if err := checkInterval(m); err != nil {
		return nil, err
	}
	if len(m.GetKey()) > wire.MaxKey {
		return nil, argument.Invalid("key", "%d bytes, at most %d", len(m.GetKey()), wire.MaxKey)
	}
	ctx = messages.WithOnce(ctx, m.GetKey())
	n, err := o.client().Schedules().Backfill(ctx, m.GetName(), m.GetFrom().AsTime(), m.GetTo().AsTime())
	return &messages.BackfillRecurringResponse{Count: convert.Count(n)}, err
}
