// Package principal reads whose message an actor got: a peer over the network is
// named in the message header.
package principal

import (
	"slices"

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

// Party is what a resource is charged to. The zero value is this process. A peer
// without a principal is charged to its host alone.
type Party struct{ Principal, Host string }

// PartyOf is what a message's resources are charged to.
func PartyOf(c actor.Context) Party {
	header := c.MessageHeader()
	if header == nil || !slices.Contains(header.Keys(), messages.PrincipalHeader) {
		return Party{}
	}
	return Party{header.Get(messages.PrincipalHeader), header.Get(messages.HostHeader)}
}

// Holder tells apart those that have a share: principals, and the hosts of peers
// without one.
func (p Party) Holder() Party {
	if p.Principal != "" {
		p.Host = ""
	}
	return p
}
