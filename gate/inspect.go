package gate

import (
	"context"
	"fmt"
	"iter"
	"strconv"

	"github.com/wakebell/wakebell/internal/paging"
	"github.com/wakebell/wakebell/redisops/audit"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Guard accepts a write to a resource of a gate, unless it accepted a write with
// a newer token before. Call it in the turn, before the write. The guard
// keeps its state in Redis and is only as durable as that: a resource that can
// remember the token itself is the better guard. Errors: ErrFenceStale,
// ErrFenceRegressed, ErrFenceUnknown, wakebell.ErrInvalid.
//
// The guard remembers a token for an hour after its last use (7 days with
// gate guard --elsewhere), and up to 100,000 resources of a gate. An older
// token that it has forgotten passes only while it has the turn, so forgetting
// never lets a stale token pass.
func (g *Gates) Guard(ctx context.Context, name, resource string, fence uint64) error {
	if running := g.running(); running != nil && !g.elsewhere {
		waits, err := running.Waits(ctx, name, fence)
		if err != nil {
			return fmt.Errorf("guard %q of gate %q: %w", resource, name, err)
		}
		if waits {
			return fmt.Errorf("%w (%q of gate %q: %d waits for the turn)", ErrFenceUnknown, resource, name, fence)
		}
	}
	return g.store.Guard(ctx, name, resource, fence, g.elsewhere)
}

// Show reads a gate with its first 100 waiters in order. A gate that was never
// used is shown as one without a holder.
func (g *Gates) Show(ctx context.Context, name string) (wakebelltype.GateInfo, error) {
	return g.reads.Show(ctx, name)
}

// List yields the gates that have a holder or waiters, without the waiters,
// sorted by name. A gate that is in use all the time is yielded once, also by a
// listing that continues after a Cursor. A gate that cannot be read is yielded with
// its Err, and the listing continues.
func (g *Gates) List(ctx context.Context, p wakebelltype.Page) iter.Seq2[wakebelltype.GateInfo, error] {
	return paging.Limited(p, g.reads.List(ctx, p.After))
}

// ForceRelease takes the turn with this token from its holder and hands it over
// to the next waiter; the holder's context ends with ErrTurnLost. It reports
// whether the token had the turn. The holder may not know of the loss yet: make
// sure that it has stopped, or that its writes are guarded.
func (g *Gates) ForceRelease(ctx context.Context, name string, fence uint64) (bool, error) {
	released, err := g.store.Release(ctx, name, fence, g.terms)
	if released {
		g.audit.Record(ctx, wakebelltype.AuditGateRelease, name, audit.One(audit.Details("fence", strconv.FormatUint(fence, 10)), err))
	}
	return released, err
}

// Repair raises the tokens of a gate above all that its guard has seen and above
// floor: a token that another resource has seen, or 0. A turn with a lower token
// is lost, and waiters with lower tickets take new ones.
//
// Tokens in the guard that no turn can have had (above the last token issued and
// more than a day ahead of the clocks of Redis and of this machine) raise
// nothing and are cleared. Remove undoes a floor that was too high.
func (g *Gates) Repair(ctx context.Context, name string, floor uint64) (wakebelltype.GateRepaired, error) {
	repaired, err := g.store.Repair(ctx, name, floor, g.terms)
	g.audit.Record(ctx, wakebelltype.AuditGateRepair, name, audit.One(fmt.Sprintf("tokens from %d to %d", repaired.Before, repaired.After), err))
	return repaired, err
}

// Remove removes a gate with its queue and the state of its guard, and reports
// whether it existed. Idle gates expire after 5 minutes, so Remove is for
// gates whose tokens were raised too far or that are no longer used. A gate
// with a holder or waiters is left unchanged with ErrHeld, unless force is
// set: then its turn is lost and its waiters take new tickets.
//
// A gate of the same name continues with tokens above the last one, and its
// guard refuses older tokens. Only tokens more than a day ahead of Redis's
// clock are forgotten: the next tokens are below them, and what another resource
// has seen of them must be lowered too.
func (g *Gates) Remove(ctx context.Context, name string, force bool) (bool, error) {
	r, err := g.store.Remove(ctx, name, force, g.terms)
	switch {
	case err != nil:
		return false, err
	case r.InUse:
		return false, fmt.Errorf("remove gate %q: %w: by %d, with %d waiting", name, ErrHeld, r.Holder, r.Waiting)
	}
	if r.Existed {
		g.audit.Record(ctx, wakebelltype.AuditGateRemove, name, audit.One("", nil))
	}
	return r.Existed, nil
}
