package server

import (
	"context"

	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/rpc"
)

// timers implements the service Timers of messages/services.proto. The gateway
// carries out its calls.
type timers struct {
	rpc.UnsafeTimersServer

	server *Server
}

var _ rpc.TimersServer = (*timers)(nil)

func (t *timers) Session(stream rpc.Timers_SessionServer) error { return t.server.session(stream) }

func (t *timers) Schedule(ctx context.Context, m *messages.ScheduleRequest) (*messages.ScheduleResponse, error) {
	return ask[*messages.ScheduleResponse](ctx, t.server, m)
}

func (t *timers) ScheduleBatch(ctx context.Context, m *messages.ScheduleBatchRequest) (*messages.ScheduleBatchResponse, error) {
	return ask[*messages.ScheduleBatchResponse](ctx, t.server, m)
}

func (t *timers) Cancel(ctx context.Context, m *messages.CancelRequest) (*messages.CancelResponse, error) {
	return ask[*messages.CancelResponse](ctx, t.server, m)
}

func (t *timers) GetTimer(ctx context.Context, m *messages.GetTimerRequest) (*messages.GetTimerResponse, error) {
	return ask[*messages.GetTimerResponse](ctx, t.server, m)
}

func (t *timers) ListTimers(ctx context.Context, m *messages.ListTimersRequest) (*messages.ListTimersResponse, error) {
	return ask[*messages.ListTimersResponse](ctx, t.server, m)
}

func (t *timers) Reschedule(ctx context.Context, m *messages.RescheduleRequest) (*messages.RescheduleResponse, error) {
	return ask[*messages.RescheduleResponse](ctx, t.server, m)
}

func (t *timers) RunNow(ctx context.Context, m *messages.RunNowRequest) (*messages.RunNowResponse, error) {
	return ask[*messages.RunNowResponse](ctx, t.server, m)
}

func (t *timers) GetTopicStats(ctx context.Context, m *messages.GetTopicStatsRequest) (*messages.GetTopicStatsResponse, error) {
	return ask[*messages.GetTopicStatsResponse](ctx, t.server, m)
}

func (t *timers) GetJoin(ctx context.Context, m *messages.GetJoinRequest) (*messages.GetJoinResponse, error) {
	return ask[*messages.GetJoinResponse](ctx, t.server, m)
}

func (t *timers) ListParts(ctx context.Context, m *messages.ListPartsRequest) (*messages.ListPartsResponse, error) {
	return ask[*messages.ListPartsResponse](ctx, t.server, m)
}

func (t *timers) AddParts(ctx context.Context, m *messages.AddPartsRequest) (*messages.AddPartsResponse, error) {
	return ask[*messages.AddPartsResponse](ctx, t.server, m)
}

func (t *timers) CloseJoin(ctx context.Context, m *messages.CloseJoinRequest) (*messages.CloseJoinResponse, error) {
	return ask[*messages.CloseJoinResponse](ctx, t.server, m)
}

func (t *timers) CancelJoin(ctx context.Context, m *messages.CancelJoinRequest) (*messages.CancelJoinResponse, error) {
	return ask[*messages.CancelJoinResponse](ctx, t.server, m)
}

func (t *timers) PutRecurring(ctx context.Context, m *messages.PutRecurringRequest) (*messages.PutRecurringResponse, error) {
	return ask[*messages.PutRecurringResponse](ctx, t.server, m)
}

func (t *timers) DeleteRecurring(ctx context.Context, m *messages.DeleteRecurringRequest) (*messages.DeleteRecurringResponse, error) {
	return ask[*messages.DeleteRecurringResponse](ctx, t.server, m)
}

func (t *timers) EnableRecurring(ctx context.Context, m *messages.EnableRecurringRequest) (*messages.EnableRecurringResponse, error) {
	return ask[*messages.EnableRecurringResponse](ctx, t.server, m)
}

func (t *timers) RunRecurring(ctx context.Context, m *messages.RunRecurringRequest) (*messages.RunRecurringResponse, error) {
	return ask[*messages.RunRecurringResponse](ctx, t.server, m)
}

func (t *timers) GetRecurring(ctx context.Context, m *messages.GetRecurringRequest) (*messages.GetRecurringResponse, error) {
	return ask[*messages.GetRecurringResponse](ctx, t.server, m)
}

func (t *timers) ListRecurring(ctx context.Context, m *messages.ListRecurringRequest) (*messages.ListRecurringResponse, error) {
	return ask[*messages.ListRecurringResponse](ctx, t.server, m)
}

func (t *timers) PreviewRecurring(ctx context.Context, m *messages.PreviewRecurringRequest) (*messages.PreviewRecurringResponse, error) {
	return ask[*messages.PreviewRecurringResponse](ctx, t.server, m)
}

func (t *timers) GuardTurn(ctx context.Context, m *messages.GuardTurnRequest) (*messages.GuardTurnResponse, error) {
	return ask[*messages.GuardTurnResponse](ctx, t.server, m)
}

func (t *timers) Publish(ctx context.Context, m *messages.PublishRequest) (*messages.PublishResponse, error) {
	return ask[*messages.PublishResponse](ctx, t.server, m)
}
