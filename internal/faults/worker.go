package faults

import (
	"context"
	"errors"
	"time"

	"github.com/wakebell/wakebell"
)

// worker handles timers as their bodies say.
type worker struct{ reporter }

func (w worker) handle(ctx context.Context, t wakebell.Timer[Work]) error {
	line := Line{
		ID: t.ID, Generation: t.Body.Generation, Attempt: t.Attempt, Failures: t.Failures,
		Activation: t.Activation, Delivered: t.Delivered,
	}
	if t.Body.Key != "" {
		line.ID, line.Message = t.Body.Key, t.ID
	}
	report := func(event Event) { line.Event = event; w.report(line) }
	report(EventBegin)
	end, err := do(ctx, t)
	line.End = end
	if t.Body.Settle && (end == EndAck || end == EndNack) {
		report(EventSettling)
		line.Result = result(t.Settle(ctx, err))
		report(EventSettled)
	}
	report(EventEnd)
	if end == EndPanic {
		panic("intended panic")
	}
	return err
}

func do(ctx context.Context, t wakebell.Timer[Work]) (End, error) {
	if t.Body.For > 0 {
		over := ctx.Done()
		if t.Body.Stubborn {
			over = nil
		}
		select {
		case <-time.After(t.Body.For):
		case <-over:
			cause := context.Cause(ctx)
			if errors.Is(cause, wakebell.ErrDraining) {
				return EndDraining, cause
			}
			return EndCut, cause
		}
	}
	switch {
	case t.Attempt <= t.Body.Panics:
		return EndPanic, nil
	case t.Failures < t.Body.Fails:
		return EndNack, errors.New("intended failure")
	case t.Body.Reject:
		return EndReject, wakebell.Reject(errors.New("intended failure"))
	default:
		return EndAck, nil
	}
}

func result(err error) Result {
	switch {
	case err == nil:
		return ResultAccepted
	case errors.Is(err, wakebell.ErrSuperseded), errors.Is(err, wakebell.ErrCancelled), errors.Is(err, wakebell.ErrLeaseLost):
		return ResultRefused
	default:
		return ResultUnknown
	}
}
