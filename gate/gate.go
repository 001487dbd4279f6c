// Package gate has FIFO locks with fencing tokens, shared by all processes that
// use the same Redis.
//
// Gates are standalone (New) or belong to a System (wakebell.System.Gates). A
// process acquires the turn at a gate, proceeds, and releases it:
//
//	gates, err := gate.New(conn, gate.Config{}) // package connection makes conn
//	err = gates.With(ctx, "deploy", func(ctx context.Context, fence uint64) error {
//		…
//	})
//
// Turns are granted in the order of the requests. A process that dies loses its
// turn when the lease expires. Docs: docs/gates.md.
package gate

import (
	"context"
	"iter"

	actorgates "github.com/wakebell/wakebell/actors/gates"
	"github.com/wakebell/wakebell/redisops/gates"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Errors of gates, besides those of package wakebell.
var (
	// ErrTurnLost: a turn ended before it was released, because its lease was not
	// extended in time or an operator released it by force. It is also the cause
	// of the turn's context.
	ErrTurnLost = actorgates.ErrTurnLost
	// ErrHeld: the gate is held, or it has waiters.
	ErrHeld = actorgates.ErrHeld
	// ErrClosed: the Gates were closed, or their System is not running.
	ErrClosed = actorgates.ErrClosed
	// ErrFenceStale: the resource has seen a newer fencing token.
	ErrFenceStale = gates.ErrFenceStale
	// ErrFenceRegressed: the token has the turn, and yet the resource has seen a
	// newer one. Redis lost data, and the tokens of the gate stepped back;
	// Gates.Repair raises them.
	ErrFenceRegressed = gates.ErrFenceRegressed
	// ErrFenceUnknown: no turn has had this fencing token. It was made up, or
	// Redis lost the turn. Do not write.
	ErrFenceUnknown = gates.ErrFenceUnknown
	// ErrExhausted: the gate has no more fencing tokens, because they were
	// raised too far. Gates.Remove lets it begin anew.
	ErrExhausted = wakebelltype.ErrGateExhausted
)

// Locker acquires turns at gates: Gates in this process, or those of a
// remote.Client.
type Locker interface {
	Acquire(ctx context.Context, name string) (Turn, error)
	TryAcquire(ctx context.Context, name string) (Turn, error)
	With(ctx context.Context, name string, fn func(ctx context.Context, fence uint64) error) error
	Guard(ctx context.Context, name, resource string, fence uint64) error
}

// Operator inspects and repairs gates: Gates in this process, or those of a
// remote.Client.
type Operator interface {
	List(ctx context.Context, p wakebelltype.Page) iter.Seq2[wakebelltype.GateInfo, error]
	Show(ctx context.Context, name string) (wakebelltype.GateInfo, error)
	ForceRelease(ctx context.Context, name string, fence uint64) (bool, error)
	Repair(ctx context.Context, name string, floor uint64) (wakebelltype.GateRepaired, error)
	Remove(ctx context.Context, name string, force bool) (bool, error)
}

var (
	_ Locker   = (*Gates)(nil)
	_ Operator = (*Gates)(nil)
)
