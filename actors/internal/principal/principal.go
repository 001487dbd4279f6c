// Package principal reads whose message an actor got: a peer over the network is
// named in the message header.
package principal

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/messages"
)

// Of is whose message it is; empty: of this process.
func Of(c actor.Context) string {
	if header := c.MessageHeader(); header != nil {
		return header.Get(messages.PrincipalHeader)
	}
	return ""
}
