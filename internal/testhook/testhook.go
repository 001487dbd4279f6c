// Package testhook is an internal test hook: it gives package wakebelltest access
// to unexported parts of package wakebell, and the tests of the whole stack. Package
// wakebell sets the functions. They pass its types as any, because wakebell
// imports this package.
package testhook

import (
	"context"
	"net"
	"time"

	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/internal/envelope"
)

// Hooks change how a System behaves in a test. The zero value changes nothing.
type Hooks struct {
	// Source, if not nil, wraps the Source of a topic's poller.
	Source func(poller.Source) poller.Source

	// Random, if not nil, returns the numbers in [0, 1) that add jitter to delays.
	Random func() float64

	// Idle, if not 0, is a lower bound of MaxPollingInterval, and the interval at
	// which cluster-wide overrides are read, the subscription to hints is probed,
	// the node registers its topics again and its state is stored. In virtual time every poll costs real time, however long the wait.
	Idle time.Duration

	// NoWindow makes the default of wakebell.DeliveryWindow 0.
	NoWindow bool
}

// Holder takes the calls of a timer's methods in place of a lease.
type Holder interface {
	Context() context.Context
	Settle(ctx context.Context, err error) error
	Extend(ctx context.Context) error
	Checkpoint(ctx context.Context, body envelope.Envelope) error
	Progress(ctx context.Context, fraction float64, note string) error
	Result(ctx context.Context, value envelope.Envelope) error
}

// Network takes the place of the operating system's network in a test: sockets do not
// work in virtual time. A nil function is that of package net.
type Network struct {
	Listen func(network, address string) (net.Listener, error)
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
}

var (
	// Connect sets the Network of a *remote.Config. Package remote sets this function.
	Connect func(cfg any, n Network)

	// Hook sets the hooks of a *wakebell.System that is not started.
	Hook func(system any, h Hooks)

	// Kill ends a *wakebell.System as a crash of its process would: no lease is
	// settled or released.
	Kill func(system any) error

	// Audit makes a *wakebell.System look for joins that are to be audited, as it does every
	// Hooks.Idle otherwise.
	Audit func(system any)

	// Meta returns the wakebell.Meta of the first delivery of a wakebell.Draft.
	Meta func(draft any, h Holder) (meta any, err error)

	// HolderOf returns the Holder of a wakebell.Meta that Meta made, else nil.
	HolderOf func(meta any) Holder
)
