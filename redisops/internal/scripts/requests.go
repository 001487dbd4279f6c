package scripts

import (
	"fmt"
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/wakebelltype"
)

// maxWant is the maximum number of leases that a request may ask for.
const maxWant = 10_000

// MaxReason is the maximum length of the reason of a dead letter, in bytes.
const MaxReason = 1024

// CheckRequest checks the parts of a request that all sources share. Last is the
// last verdict that the source supports.
func CheckRequest(r *exchange.Request, last exchange.Verdict) error {
	switch {
	case r.Incarnation == "":
		return fmt.Errorf("%w: incarnation is empty", wakebelltype.ErrInvalid)
	case r.Stream < 0:
		return fmt.Errorf("%w: stream: %d, want at least 0", wakebelltype.ErrInvalid, r.Stream)
	case r.Sequence < 1 || r.Sequence > 1<<53:
		return fmt.Errorf("%w: sequence: %d, want 1 to 2^53", wakebelltype.ErrInvalid, r.Sequence)
	case r.Want < 0 || r.Want > maxWant:
		return fmt.Errorf("%w: want: %d, want 0 to %d", wakebelltype.ErrInvalid, r.Want, maxWant)
	case r.LeaseTTL < time.Millisecond && (r.Want > 0 || len(r.Extend) > 0):
		return fmt.Errorf("%w: lease ttl: %v, want at least 1ms", wakebelltype.ErrInvalid, r.LeaseTTL)
	case r.Ahead < 0 || r.Ahead > max(r.LeaseTTL, 0):
		return fmt.Errorf("%w: ahead: %v, want 0 to the lease ttl", wakebelltype.ErrInvalid, r.Ahead)
	}
	for i := range r.Settle {
		if v := r.Settle[i].Verdict; v < exchange.Ack || v > last {
			return fmt.Errorf("%w: settlement %d: verdict %d is unknown", wakebelltype.ErrInvalid, i, v)
		}
	}
	return nil
}

// Reorder replaces indices into order by the elements of order.
func Reorder(reply *exchange.Reply, order []int) {
	for i := range reply.Refused {
		if at := reply.Refused[i].Index; at < len(order) {
			reply.Refused[i].Index = order[at]
		}
	}
	for i := range reply.DeadLettered {
		if at := reply.DeadLettered[i].Index; at >= 0 && at < len(order) {
			reply.DeadLettered[i].Index = order[at]
		}
	}
}
