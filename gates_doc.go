package wakebell

import (
	"context"
	"iter"

	actorgates "github.com/wakebell/wakebell/actors/gates"
	"github.com/wakebell/wakebell/redisops"
)

var (
	// ErrTurnLost: a turn ended before it was released, because its lease was not
	// extended in time or an operator released it by force. It is also the cause
	// of the turn's context.
	ErrTurnLost = actorgates.ErrTurnLost
	// ErrGateHeld: the gate is held, or it has waiters.
	ErrGateHeld = actorgates.ErrHeld
	// ErrGatesClosed: the Gates were closed, or their System is not running.
	ErrGatesClosed = actorgates.ErrClosed
	// ErrFenceStale: the resource has seen a newer fencing token.
	ErrFenceStale = redisops.ErrFenceStale
	// ErrFenceRegressed: the token has the turn, and yet the resource has seen a
	// newer one. Redis lost data, and the tokens of the gate stepped back;
	// Gates.Repair raises them.
	ErrFenceRegressed = redisops.ErrFenceRegressed
	// ErrFenceUnknown: no turn has had this fencing token. It was made up, or
	// Redis lost the turn. Do not write.
	ErrFenceUnknown = redisops.ErrFenceUnknown
	// ErrGateExhausted: the gate has no more fencing tokens, because they were
	// raised too far. Gates.Remove lets it begin anew.
	ErrGateExhausted = redisops.ErrGateExhausted
)

// GateLocker acquires turns at gates: Gates in this process, or those of a
// remote.Client.
type GateLocker interface {
	Acquire(ctx context.Context, name string) (Turn, error)
	TryAcquire(ctx context.Context, name string) (Turn, error)
	With(ctx context.Context, name string, fn func(ctx context.Context, fence uint64) error) error
	Guard(ctx context.Context, name, resource string, fence uint64) error
}

// GateOperator inspects and repairs gates: Gates in this process, or those of a
// remote.Client.
type GateOperator interface {
	List(ctx context.Context) iter.Seq2[GateInfo, error]
	Show(ctx context.Context, name string) (GateInfo, error)
	ForceRelease(ctx context.Context, name string, fence uint64) (bool, error)
	Repair(ctx context.Context, name string, floor uint64) (GateRepaired, error)
	Remove(ctx context.Context, name string, force bool) (bool, error)
}

var (
	_ GateLocker   = (*Gates)(nil)
	_ GateOperator = (*Gates)(nil)
)

// GateKeys are the base names of what gates keep in Redis; see docs/keys.md.
type GateKeys = redisops.GateKeys

// GateInfo is a gate as it is stored in Redis.
type GateInfo = redisops.GateInfo

// GateTicket is a holder or a waiter of a gate.
type GateTicket = redisops.GateTicket

// GateRepaired is the result of Gates.Repair.
type GateRepaired = redisops.Repaired
