package peer

import (
	"context"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/messages"
)

// publicFaults replace the texts of failures of the node or its Redis. Those texts
// contain addresses, keys and commands, and appear only in the node's log. Errors
// with other codes are about the peer's own request.
var publicFaults = map[messages.Code]string{
	messages.Code_CODE_UNAVAILABLE:    "the node or its redis is unavailable",
	messages.Code_CODE_MEMORY_FULL:    "the node's redis is out of memory",
	messages.Code_CODE_WRONG_TYPE:     "a key holds something else",
	messages.Code_CODE_DENIED:         "the node's redis user lacks a right",
	messages.Code_CODE_CHANNEL_DENIED: "the node's redis user lacks the right to a channel",
	messages.Code_CODE_UNSUPPORTED:    "the node's redis does not support it",
	messages.Code_CODE_INTERNAL:       "the node failed; its log says why",
}

// Discreet returns a message without internals of the node. It does not change the
// message, which may be shared.
func (g *Guard) Discreet(m proto.Message) proto.Message {
	switch m := m.(type) {
	case *messages.Error:
		return g.DiscreetError(m)
	case *messages.ReminderFailed:
		if g.isPrivate(m.GetError().GetCode(), m.GetError().GetMessage()) {
			m = proto.CloneOf(m)
			m.Error = g.DiscreetError(m.GetError())
		}
		return m
	case *messages.TurnRefused:
		if g.isPrivate(m.GetCode(), m.GetReason()) {
			g.failed(m.GetCode(), m.GetReason())
			m = proto.CloneOf(m)
			m.Reason = publicFaults[m.GetCode()]
		}
		return m
	}
	return m
}

// DiscreetError is Discreet for an Error. It returns nil for nil.
func (g *Guard) DiscreetError(e *messages.Error) *messages.Error {
	if !g.isPrivate(e.GetCode(), e.GetMessage()) {
		return e
	}
	g.failed(e.GetCode(), e.GetMessage())
	e = proto.CloneOf(e)
	e.Message = publicFaults[e.GetCode()]
	return e
}

// Overloaded returns the Error for a request beyond a bound, or nil if full is nil.
func Overloaded(full error) *messages.Error {
	if full == nil {
		return nil
	}
	return messages.Failure(messages.Code_CODE_OVERLOADED, full.Error())
}

// ErrorOf converts an error of a call to the Error for its caller.
func ErrorOf(ctx context.Context, err error) *messages.Error {
	e := convert.ErrorMessage(err)
	if v := callOf(ctx); v != nil {
		return v.guard.DiscreetError(e)
	}
	return e
}

// isPrivate reports whether a text may contain internals of the node.
func (g *Guard) isPrivate(code messages.Code, text string) bool {
	if code == messages.Code_CODE_DENIED && !strings.Contains(text, wakebell.ErrDenied.Error()) {
		return false // the node's own refusal
	}
	plain, internal := publicFaults[code]
	return internal && text != plain
}

// failed logs an error that is hidden from the peer.
func (g *Guard) failed(code messages.Code, text string) {
	if skipped, ok := g.Lines.Allow("failed " + code.String()); ok {
		g.Log.Warn("a peer's request failed", "code", code.String(), "err", text, "skipped", skipped)
	}
}
