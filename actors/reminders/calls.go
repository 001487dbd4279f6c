package reminders

import (
	"context"
	"fmt"
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/actors/gateway"
	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/actors/internal/principal"
	"github.com/wakebell/wakebell/messages"
)

// request processes a request by message.
func (r *reminders) request(m Request, sender *actor.PID, of principal.Party) {
	size, timeout, fault := gateway.Check(m)
	if fault == nil {
		asked, err := r.read(m, sender)
		if err == nil {
			asked.Size, asked.Timeout = size, timeout
			r.take(asked, sender, of)
			return
		}
		fault = gateway.Failure(messages.Code_CODE_INVALID, "%v", err)
	}
	r.refuse(Call{Name: m.GetName(), Request: m.GetRequest()}, sender, fault)
}

// take admits a call, or answers why it is refused. Unlike the gateway it does so
// until the end: handlers that a drain waits for may set reminders.
func (r *reminders) take(m Call, sender *actor.PID, of principal.Party) {
	if full := r.calls.Full(of, m.Size); full != "" {
		r.refuse(m, sender, gateway.Failure(messages.Code_CODE_OVERLOADED, "%s", full))
		return
	}
	if m.Timeout == 0 {
		m.Timeout = gateway.DefaultTimeout
	}
	c := &gateway.Call{Sender: sender, Size: m.Size, Of: of, Keys: []string{m.Key}}
	c.Ctx, c.Cancel = context.WithTimeout(r.ctx, m.Timeout)
	r.queued[c] = m
	if who := r.recipient(r.keyOf(sender)); who != nil {
		who.calls++
	}
	r.calls.Add(c)
}

// pump starts the calls that can start.
func (r *reminders) pump() {
	root, self, incarnation, ctx := r.root, r.self, r.incarnation, r.ctx
	if ctx == nil || ctx.Err() != nil {
		return
	}
	for c := r.calls.Begin(); c != nil; c = r.calls.Begin() {
		m, from := r.queued[c], r.keyOf(c.Sender)
		delete(r.queued, c)
		r.env.IO.Go(func() {
			failed := r.carryOut(c, m)
			c.Cancel()
			if ctx.Err() == nil { // otherwise no incarnation would read it
				root.Send(self, reminderDone{incarnation: incarnation, call: c, from: from, failed: failed})
			}
		})
	}
}

// carryOut does the work of a call and answers it; it returns why it failed. It
// runs in a goroutine of its own.
func (r *reminders) carryOut(c *gateway.Call, m Call) (failed string) {
	answer, err := host.Recovered("carrying out a request about a reminder", func() (messages.Answer, error) {
		if c.Ctx.Err() != nil { // while it was queued
			return r.failed(m, gateway.Ended(context.Cause(c.Ctx))), nil
		}
		return m.Do(c.Ctx), nil
	})
	if err != nil {
		answer = r.failed(m, gateway.Failure(messages.Code_CODE_INTERNAL, "%v", err))
	}
	if fault, ok := answer.(*messages.ReminderFailed); ok {
		failed = fmt.Sprintf("reminder %q: %s", fault.GetName(), fault.GetError().GetMessage())
		r.logFailure(fault)
		r.count(c.Ctx, fault.GetError())
	} else {
		r.count(c.Ctx, nil)
	}
	if c.Sender != nil {
		r.root.Send(c.Sender, answer)
	}
	return failed
}

// count counts a request by its result; why is nil if it succeeded.
func (r *reminders) count(ctx context.Context, why *messages.Error) {
	result := "ok"
	if why != nil {
		result = strings.ToLower(strings.TrimPrefix(why.GetCode().String(), "CODE_"))
	}
	r.env.Metrics.ReminderRequested(ctx, result)
}

// logFailure logs a failure, because actors seldom read the answer.
func (r *reminders) logFailure(fault *messages.ReminderFailed) {
	if skipped, ok := r.failureLog.Allow(""); ok {
		r.env.Logger.Warn("reminder request failed", "reminder", fault.GetName(),
			"code", fault.GetError().GetCode().String(), "err", fault.GetError().GetMessage(), "skipped", skipped)
	}
}

func (r *reminders) failed(m Call, why *messages.Error) *messages.ReminderFailed {
	return &messages.ReminderFailed{Request: m.Request, Name: m.Name, Error: why}
}

// refuse answers a call that does not start.
func (r *reminders) refuse(m Call, sender *actor.PID, why *messages.Error) {
	fault := r.failed(m, why)
	r.logFailure(fault)
	r.count(r.ctx, why)
	if sender != nil {
		r.root.Send(sender, fault)
	}
	if who := r.recipients[r.keyOf(sender)]; who != nil {
		for _, g := range who.deliveries {
			g.failed = fmt.Sprintf("reminder %q: %s", m.Name, why.GetMessage())
		}
	}
}

// done continues with what waited for the end of a call.
func (r *reminders) done(m reminderDone) {
	r.calls.End(m.call)
	who := r.recipients[m.from]
	if who == nil {
		return
	}
	who.calls--
	for _, g := range who.deliveries {
		if m.failed != "" {
			g.failed = m.failed
		}
		r.settle(g)
	}
	r.forget(m.from)
}
