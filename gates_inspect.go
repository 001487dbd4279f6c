package wakebell

import (
	"context"
	"iter"

	"github.com/wakebell/wakebell/redisops"
)

// GateInfo is a gate as Redis has it.
type GateInfo = redisops.GateInfo

// GateTicket is somebody at a gate.
type GateTicket = redisops.GateTicket

// GateRepaired is what Gates.Repair did.
type GateRepaired = redisops.Repaired

// Guard accepts a write to a resource of a gate unless one with a newer token
// was accepted before; call it in the turn, before the write. What the guard
// remembers is in Redis, so it is as durable as that: a resource that can
// remember the token itself is the better guard. Errors: ErrFenceStale,
// ErrFenceRegressed, ErrInvalid.
func (g *Gates) Guard(ctx context.Context, name, resource string, fence uint64) error {
	return g.store.Guard(ctx, name, resource, fence)
}

// Show reads a gate, with its first 100 waiters in order. One that was never
// used is a gate that nobody holds.
func (g *Gates) Show(ctx context.Context, name string) (GateInfo, error) {
	return g.store.Show(ctx, name)
}

// List yields the gates that somebody holds or waits for, without their
// waiters, in no order.
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
// taken away, and who waits with a ticket below takes a new one.
func (g *Gates) Repair(ctx context.Context, name string, floor uint64) (GateRepaired, error) {
	return g.store.Repair(ctx, name, floor, g.terms)
}
