package wakebell

import (
	"context"
	"fmt"
	"iter"

	"github.com/wakebell/wakebell/redisops/gates"
)

// GateInfo is a gate as Redis has it.
type GateInfo = gates.Info

// GateTicket is somebody at a gate.
type GateTicket = gates.Ticket

// GateRepaired is what Gates.Repair did.
type GateRepaired = gates.Repaired

// Guard accepts a write to a resource of a gate unless one with a newer token
// was accepted before; call it in the turn, before the write. What the guard
// remembers is in Redis, so it is as durable as that: a resource that can
// remember the token itself is the better guard. Errors: ErrFenceStale,
// ErrFenceRegressed, ErrFenceUnknown, ErrInvalid.
//
// It remembers a token for an hour after it was last used, 7 days with
// GatesConfig.GuardsElsewhere, and up to 100,000 resources of a gate. A token that
// was issued longer ago, and that it does not know, passes only while it has the
// turn: what it has forgotten lets no stale token through.
func (g *Gates) Guard(ctx context.Context, name, resource string, fence uint64) error {
	if running := g.run(); running != nil && !g.away {
		waits, err := running.Waits(ctx, name, fence)
		if err != nil {
			return fmt.Errorf("guard %q of gate %q: %w", resource, name, err)
		}
		if waits {
			return fmt.Errorf("%w (%q of gate %q: %d waits for the turn)", ErrFenceUnknown, resource, name, fence)
		}
	}
	return g.store.Guard(ctx, name, resource, fence, g.away)
}

// Show reads a gate, with its first 100 waiters in order. One that was never
// used is a gate that nobody holds.
func (g *Gates) Show(ctx context.Context, name string) (GateInfo, error) {
	return g.store.Show(ctx, name)
}

// List yields the gates that are held or waited for, without their waiters, in
// no order. A gate that cannot be read is yielded with its Err, and the others
// follow.
func (g *Gates) List(ctx context.Context) iter.Seq2[GateInfo, error] { return g.store.List(ctx) }

// ForceRelease takes the turn with this token away from its holder, whoever it
// is, and hands over to the next; the holder's context ends with ErrTurnLost.
// It reports whether the token had the turn. The holder may not know yet: make
// sure that it has ended, or that what it writes to is guarded.
func (g *Gates) ForceRelease(ctx context.Context, name string, fence uint64) (bool, error) {
	return g.store.Release(ctx, name, fence, g.terms)
}

// Repair lifts the tokens of a gate above all that its guard has seen, and above
// floor: a token that a resource outside has seen, or 0. A turn below that is
// taken away, and those who wait with a ticket below take a new one. Tokens of the
// guard that no turn can have had lift nothing and are cleared: those that are
// above the last one issued and over a day ahead of the clocks of Redis and of
// this machine. What was lifted too far is left again with Remove.
func (g *Gates) Repair(ctx context.Context, name string, floor uint64) (GateRepaired, error) {
	return g.store.Repair(ctx, name, floor, g.terms)
}

// Remove removes a gate with its queue and what its guard remembers; false: there
// was none. Idle gates expire by themselves after 5 minutes, so this is for
// those whose tokens were lifted too far, or that are not to be used any more. One
// that is held or waited for is left as it is, with ErrGateHeld, unless force is
// set: then its turn is lost, and those who wait take new tickets.
//
// A gate of the same name goes on with tokens above the last one, and tokens from
// before are refused by its guard. Only tokens that were over a day ahead of
// Redis's clock are left: then the next ones are below them, and what a resource
// outside has seen of them must be lowered too.
func (g *Gates) Remove(ctx context.Context, name string, force bool) (bool, error) {
	r, err := g.store.Remove(ctx, name, force, g.terms)
	switch {
	case err != nil:
		return false, err
	case r.InUse:
		return false, fmt.Errorf("remove gate %q: %w: by %d, with %d waiting", name, ErrGateHeld, r.Holder, r.Waiting)
	}
	return r.Existed, nil
}
