package server

import (
	"context"
	"errors"

	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/httpapi"
	"github.com/wakebell/wakebell/remote/internal/peer"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

// errNotEnded ends the wait for a timer.
var errNotEnded = errors.New("the timer has not ended")

// report answers what the handler of a timer has reported. With a wait it answers when the
// timer has ended, or after it without an end. It is the operation WaitTimer, and open to the
// same callers.
func (c *httpCall) report(ctx context.Context, m *httpapi.ReportRequest) (proto.Message, error) {
	if err := c.operations.admit(c.caller); err != nil {
		return nil, err
	}
	request := &messages.WaitTimerRequest{Topic: m.GetTopic(), Id: m.GetId(), Report: m.GetWait() == nil}
	if request.GetReport() {
		if err := c.permit(request); err != nil {
			return nil, err
		}
		return c.reported(ctx, request)
	}
	wait, err := bounded("wait", m.GetWait(), 0, minWait, maxWait)
	if err != nil {
		return nil, err
	}
	_, done, err := c.wait(request)
	if err != nil {
		return nil, err
	}
	defer done()
	ctx, over := c.operations.whilePermitted(ctx, c.caller, request)
	defer over()
	waiting, stop := context.WithTimeoutCause(ctx, wait, errNotEnded)
	defer stop()
	ending, err := c.system.Client().Wait(waiting, m.GetTopic(), m.GetId())
	switch {
	case err == nil:
		return wire.EndingMessage(ending), nil
	case ctx.Err() == nil && errors.Is(context.Cause(waiting), errNotEnded):
		return c.reported(ctx, request)
	default:
		return nil, wire.StatusOf(peer.ErrorOf(ctx, ended(ctx, err)))
	}
}

func (c *httpCall) reported(ctx context.Context, m *messages.WaitTimerRequest) (proto.Message, error) {
	report, err := c.system.Client().Report(ctx, m.GetTopic(), m.GetId())
	if err != nil {
		return nil, wire.StatusOf(peer.ErrorOf(ctx, err))
	}
	return wire.EndingMessage(wakebell.Ending{Report: report}), nil
}
