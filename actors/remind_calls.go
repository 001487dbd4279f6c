package actors

import (
	"context"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/messages"
)

// request takes what an actor asks for by message.
func (r *reminders) request(m ReminderRequest, sender *actor.PID) {
	size, timeout, fault := check(m)
	if fault == nil {
		asked, err := r.read(m, sender)
		if err == nil {
			asked.Size, asked.Timeout = size, timeout
			r.take(asked, sender)
			return
		}
		fault = failure(messages.Code_CODE_INVALID, "%v", err)
	}
	r.refuse(ReminderCall{Name: m.GetName(), Request: m.GetRequest()}, sender, fault)
}

// take admits a call, or answers why not. Unlike the gateway it does so until
// the end: handlers that a drain waits for may set reminders.
func (r *reminders) take(m ReminderCall, sender *actor.PID) {
	if r.calls.full(m.Size) {
		r.refuse(m, sender, failure(messages.Code_CODE_OVERLOADED, "%d requests wait already", r.calls.waiting))
		return
	}
	if m.Timeout == 0 {
		m.Timeout = defaultTimeout
	}
	c := &call{sender: sender, size: m.Size, keys: []string{m.Key}}
	c.ctx, c.cancel = context.WithTimeout(r.ctx, m.Timeout)
	r.to[c] = m
	if who := r.knows(r.nameOf(sender)); who != nil {
		who.asked++
	}
	r.calls.add(c)
}

// pump begins what can begin.
func (r *reminders) pump() {
	root, self, epoch, ctx := r.root, r.self, r.epoch, r.ctx
	if ctx == nil || ctx.Err() != nil {
		return
	}
	for c := r.calls.begin(); c != nil; c = r.calls.begin() {
		m, from := r.to[c], r.nameOf(c.sender)
		delete(r.to, c)
		r.env.IO.Go(func() {
			failed := r.carryOut(c, m)
			c.cancel()
			if ctx.Err() == nil { // else nobody is there to read it
				root.Send(self, reminderDone{epoch: epoch, call: c, from: from, failed: failed})
			}
		})
	}
}

// carryOut does the work of a call and answers it; it returns why it failed. It
// runs in a goroutine of its own.
func (r *reminders) carryOut(c *call, m ReminderCall) (failed string) {
	answer, err := safely("carrying out a request about a reminder", func() (messages.Answer, error) {
		if c.ctx.Err() != nil { // while it waited
			return r.failed(m, ended(context.Cause(c.ctx))), nil
		}
		return m.Do(c.ctx), nil
	})
	if err != nil {
		answer = r.failed(m, failure(messages.Code_CODE_INTERNAL, "%v", err))
	}
	if fault, ok := answer.(*messages.ReminderFailed); ok {
		failed = fmt.Sprintf("reminder %q: %s", fault.GetName(), fault.GetError().GetMessage())
		r.note(fault)
	}
	if c.sender != nil {
		r.root.Send(c.sender, answer)
	}
	return failed
}

// note logs a failure: an actor seldom looks at the answer.
func (r *reminders) note(fault *messages.ReminderFailed) {
	if skipped, ok := r.unread.Allow(""); ok {
		r.env.Logger.Warn("a reminder was not set or forgotten", "reminder", fault.GetName(),
			"code", fault.GetError().GetCode().String(), "err", fault.GetError().GetMessage(), "skipped", skipped)
	}
}

func (r *reminders) failed(m ReminderCall, why *messages.Error) *messages.ReminderFailed {
	return &messages.ReminderFailed{Request: m.Request, Name: m.Name, Error: why}
}

// refuse answers what is not begun.
func (r *reminders) refuse(m ReminderCall, sender *actor.PID, why *messages.Error) {
	fault := r.failed(m, why)
	r.note(fault)
	if sender != nil {
		r.root.Send(sender, fault)
	}
	if who := r.who[r.nameOf(sender)]; who != nil {
		for _, g := range who.given {
			g.failed = fmt.Sprintf("reminder %q: %s", m.Name, why.GetMessage())
		}
	}
}

// done lets go what waited for the end of a call.
func (r *reminders) done(m reminderDone) {
	r.calls.end(m.call)
	who := r.who[m.from]
	if who == nil {
		return
	}
	who.asked--
	for _, g := range who.given {
		if m.failed != "" {
			g.failed = m.failed
		}
		r.settle(g)
	}
	r.forget(m.from)
}
