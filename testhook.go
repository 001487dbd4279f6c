package wakebell

import (
	"context"
	"fmt"
	"time"

	"github.com/wakebell/wakebell/actors"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/internal/testhook"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/timers"
)

// holder carries out Meta.Settle, Meta.Extend and Meta.Context.
type holder interface {
	Context() context.Context
	Settle(ctx context.Context, err error) error
	Extend(ctx context.Context) error
}

// delivered is the holder of a timer that a System delivered.
type delivered struct {
	*poller.Delivery
	span *deliverySpan // nil: the delivery is not traced
}

func (d delivered) Settle(ctx context.Context, err error) error {
	refused := d.Delivery.Settle(ctx, verdict(err))
	if d.span != nil && refused == nil {
		d.span.settled.Store(&settlement{err})
	}
	return refused
}

func init() {
	testhook.Hook = func(system any, h testhook.Hooks) {
		s := system.(*System)
		s.hooks, s.store.PingEvery = h, h.Idle
	}
	testhook.Kill = func(system any) error { return system.(*System).kill() }
	testhook.Meta = func(draft any, h testhook.Holder) (any, error) { return draft.(Draft).handedTo(h) }
	testhook.HolderOf = func(meta any) testhook.Holder { return meta.(Meta).delivery }
}

// kill ends the System without a drain; its leases expire.
func (s *System) kill() error {
	return s.end((*actors.Runtime).Stop)
}

// handedTo returns the Meta of the draft's first delivery, at its instant; h
// carries out its Settle and Extend.
func (d Draft) handedTo(h holder) (Meta, error) {
	entry, err := d.entry(DefaultPayloadLimit)
	if err == nil {
		b := timers.NewBatch("", 1)
		err = b.Add(d.topic, &entry)
	}
	if err != nil {
		return Meta{}, err
	}
	env, err := envelope.Decode(entry.Payload)
	if err != nil {
		return Meta{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	at := d.at
	if at.IsZero() {
		at = time.Now().Add(d.in)
	}
	m := meta(&poller.Delivery{
		Lease:   exchange.Lease{ID: d.id, Activation: at, Claims: 1},
		Topic:   d.topic,
		Claimed: at,
	}, env)
	m.delivery = h
	return m, nil
}
