package gates

import (
	"fmt"
	"slices"

	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/exchange"
)

// RightsChanged reports that the rights of remote principals have changed. Those without a
// right to a gate lose their places in its queue at once. Their turns are not extended any
// more: each ends with its lease, which its owner counts on, and may be released before.
type RightsChanged struct {
	// Permits reports whether a principal has the right now.
	Permits func(principal, gate string) bool
}

var errNoRight = fmt.Errorf("%w: the principal has no right to the gate", exchange.ErrForbidden)

func (k *gatekeeper) rightsChanged(m RightsChanged) {
	k.gates.permits = m.Permits
	for _, sameActor := range k.owners {
		for _, o := range slices.Clone(sameActor) {
			for _, w := range o.at {
				if w.turn == nil && !k.permitted(o.holder, w.gate) {
					k.refuse(w, errNoRight)
					k.leave(w)
				}
			}
		}
	}
}

// permitted reports whether a holder may pass a gate, as far as the rights have changed.
// Before, and for actors of this process, there is nothing to ask.
func (k *gatekeeper) permitted(of *remoteHolder, gate string) bool {
	return of == nil || k.gates.permits == nil || k.gates.permits(of.Principal, gate)
}

// mayExtend reports whether the owner of a turn has still the right to it.
func (k *gatekeeper) mayExtend(t *Turn) bool {
	return t.owner == nil || k.permitted(t.owner.owner.holder, t.Gate)
}

// refuseWithoutRight refuses a request that was on its way when the rights changed.
func (k *gatekeeper) refuseWithoutRight(from *remoteHolder, m *messages.AcquireTurnRequest, refuse func(messages.Code, string)) bool {
	if k.permitted(from, m.GetGate()) {
		return false
	}
	refuse(messages.Code_CODE_FORBIDDEN, errNoRight.Error())
	return true
}
