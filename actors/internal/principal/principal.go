// Package principal reads from a message header which principal and host sent a
// message over the network.
package principal

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/messages"
)

// Of returns the principal of a message; empty: it was sent in this process.
func Of(c actor.Context) string {
	if header := c.MessageHeader(); header != nil {
		return header.Get(messages.PrincipalHeader)
	}
	return ""
}

// Party is charged for resources. The zero value is this process. A peer without
// a principal is charged by its host alone.
type Party struct{ Principal, Host string }

// PartyOf returns the party that is charged for a message.
func PartyOf(c actor.Context) Party {
	header := c.MessageHeader()
	if header == nil || !slices.Contains(header.Keys(), messages.PrincipalHeader) {
		return Party{}
	}
	return Party{header.Get(messages.PrincipalHeader), header.Get(messages.HostHeader)}
}

// Holder returns the owner of a share: a principal, or the host of peers without
// one.
func (p Party) Holder() Party {
	if p.Principal != "" {
		p.Host = ""
	}
	return p
}
