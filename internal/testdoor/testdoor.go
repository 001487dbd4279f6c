// Package testdoor is the door through which package wakebelltest reaches what
// package wakebell keeps to itself, and nobody else does. Package wakebell sets
// the functions; they take and give its types as any, because it imports this
// package.
package testdoor

import (
	"context"
	"time"

	"github.com/wakebell/wakebell/actors/gates"
	"github.com/wakebell/wakebell/actors/poller"
)

// Hooks change how a System behaves in a test. The zero value changes nothing.
type Hooks struct {
	// Source, if not nil, wraps what the poller of a topic takes leases from.
	Source func(poller.Source) poller.Source

	// Random, if not nil, yields the numbers in [0, 1) that spread delays.
	Random func() float64

	// Idle, if not 0, is the least that MaxPollingInterval is, and how often
	// orders are read and the subscription to hints is probed: virtual time
	// costs what happens in it.
	Idle time.Duration
}

// Holder is what Settle and Extend of a timer call, in place of a lease.
type Holder interface {
	Settle(ctx context.Context, err error) error
	Extend(ctx context.Context) error
}

var (
	// Hook gives a *wakebell.System that is not started its hooks.
	Hook func(system any, h Hooks)

	// Kill ends a *wakebell.System as the death of its process would: nothing
	// is settled, nothing released.
	Kill func(system any) error

	// Meta makes the wakebell.Meta of a first delivery of a wakebell.Draft.
	Meta func(draft any, h Holder) (meta any, err error)

	// HolderOf gives what Meta put into a wakebell.Meta; nil: nothing did.
	HolderOf func(meta any) Holder

	// Observe has told be told of every ticket that the Gates of a
	// *gate.Config take.
	Observe func(gatesConfig any, told func(gates.TicketTaken))
)
