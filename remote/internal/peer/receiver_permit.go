package peer

import (
	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/access"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

// Permit decides whether a message of the peer is passed on. Messages other than
// Wakebell's requests were admitted by Config.Allow.
func (in *inbound) Permit(m proto.Message) *messages.Error {
	if _, ours := access.Needs[wire.FullName(m)]; !ours {
		return nil
	}
	return in.guard.Permit(in.caller, m)
}

// answerTo returns a function that answers the sender of a message, or nil if there
// is no sender.
func (in *inbound) answerTo(sender *actor.PID) func(proto.Message) {
	if sender == nil {
		return nil
	}
	return func(answer proto.Message) { in.guard.system.Root.Send(sender, answer) }
}
