package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/messages"
)

// logFailure logs the failure of a request without a sender, at most once a
// second: while Redis is down all fail.
func (g *gateway) logFailure(request messages.Request, fault *messages.Error) {
	if skipped, ok := g.failureLog.Allow(""); ok {
		g.env.Logger.Warn("request without a sender failed",
			"request", fmt.Sprintf("%T", request), "code", fault.GetCode().String(), "err", fault.GetMessage(), "skipped", skipped)
	}
}

// answer answers a call, once.
func (g *gateway) answer(c *Call, answer messages.Answer) {
	if !c.answered.Swap(true) {
		g.reply(c.request, c.Sender, answer)
	}
}

func (g *gateway) reply(request messages.Request, sender *actor.PID, answer messages.Answer) {
	fault, failed := answer.(*messages.Error)
	g.count(request, fault)
	if failed && request != nil {
		fault.Request = request.GetRequest()
	}
	switch {
	case sender != nil:
		g.root.Send(sender, answer)
	case failed:
		g.logFailure(request, fault)
	}
}

// count counts a request by its result; fault is nil if it succeeded.
func (g *gateway) count(request messages.Request, fault *messages.Error) {
	method, code := "unknown", "OK"
	if request != nil {
		method = string(request.ProtoReflect().Descriptor().Name())
	}
	if fault != nil {
		code = strings.TrimPrefix(fault.GetCode().String(), "CODE_")
	}
	g.env.Metrics.Requested(g.ctx, strings.TrimSuffix(method, "Request"), code)
}

// Ended returns the answer to a call whose context has ended.
func Ended(cause error) *messages.Error {
	if errors.Is(cause, context.DeadlineExceeded) {
		return Failure(messages.Code_CODE_DEADLINE, "the timeout passed; the outcome is unknown")
	}
	return Failure(messages.Code_CODE_UNAVAILABLE, "%v; the outcome is unknown", cause)
}

// Failure returns an Error with a formatted text.
func Failure(code messages.Code, format string, args ...any) *messages.Error {
	return messages.Failure(code, fmt.Sprintf(format, args...))
}
