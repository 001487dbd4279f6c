package peer

import (
	"context"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
)

// publicFaults are what peers are told of failures that lie in the node or in its
// Redis: the texts of those have addresses, keys and commands in them, which are
// for the node's log alone. Errors of other codes are about what the peer asked.
var publicFaults = map[messages.Code]string{
	messages.Code_CODE_UNAVAILABLE:    "the node or its redis is unavailable",
	messages.Code_CODE_MEMORY_FULL:    "the node's redis is out of memory",
	messages.Code_CODE_WRONG_TYPE:     "a key holds something else",
	messages.Code_CODE_DENIED:         "the node's redis user lacks a right",
	messages.Code_CODE_CHANNEL_DENIED: "the node's redis user lacks the right to a channel",
	messages.Code_CODE_UNSUPPORTED:    "the node's redis does not support it",
	messages.Code_CODE_INTERNAL:       "the node failed; its log says why",
}

// Discreet is a message as a peer may have it: without what it should not know
// of the node. The message itself may be others' as well and is not changed.
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

// DiscreetError is discreet for an Error; nil stays nil.
func (g *Guard) DiscreetError(e *messages.Error) *messages.Error {
	if !g.isPrivate(e.GetCode(), e.GetMessage()) {
		return e
	}
	g.failed(e.GetCode(), e.GetMessage())
	e = proto.CloneOf(e)
	e.Message = publicFaults[e.GetCode()]
	return e
}

// Overloaded is the answer to a request beyond a bound; nil for none.
func Overloaded(full error) *messages.Error {
	if full == nil {
		return nil
	}
	return messages.Failure(messages.Code_CODE_OVERLOADED, full.Error())
}

// ErrorOf is an error of a call as its caller may have it.
func ErrorOf(ctx context.Context, err error) *messages.Error {
	e := wakebell.ErrorMessage(err)
	if v := callOf(ctx); v != nil {
		return v.guard.DiscreetError(e)
	}
	return e
}

// tells reports whether a text may have more in it than is for a peer.
func (g *Guard) isPrivate(code messages.Code, text string) bool {
	if code == messages.Code_CODE_DENIED && !strings.Contains(text, wakebell.ErrDenied.Error()) {
		return false // the node's own refusal
	}
	plain, internal := publicFaults[code]
	return internal && text != plain
}

// failed logs what a peer is not told.
func (g *Guard) failed(code messages.Code, text string) {
	if skipped, ok := g.Lines.Allow("failed " + code.String()); ok {
		g.Log.Warn("a peer's request failed", "code", code.String(), "err", text, "skipped", skipped)
	}
}
