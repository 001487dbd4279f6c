package wakebelltest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/wakebelltest"
)

// This tests code that schedules and its handler, over three days.
func ExampleRun() {
	b := &bank{open: true}
	wakebelltest.Run(t, b.config(), func(t *testing.T, w *wakebelltest.World) {
		require.NoError(t, placeOrder(t.Context(), w.Client(), Order{"42", 995}))
		w.Advance(71 * time.Hour)
		require.Empty(t, b.charged)
		w.Advance(time.Hour)
		require.Equal(t, []string{"42"}, b.charged)
	})
}

// This creates a world in a bubble that the test needs for other reasons.
func ExampleNew() {
	synctest.Test(t, func(t *testing.T) {
		w := wakebelltest.New(t, wakebell.Config{})
		require.NoError(t, placeOrder(t.Context(), w.Client(), Order{"42", 995}))
		require.Len(t, w.Upcoming("orders"), 1)
	})
}

// This tests a handler alone.
func ExampleTimer() {
	b := &bank{open: false}
	timer := wakebelltest.Timer(t, Orders, Order{"42", 995}, wakebell.ID("42"))
	timer.Attempt = 3
	require.ErrorContains(t, b.charge(t.Context(), timer), "bank is closed")
}

// This handler settles before it returns.
func ExampleLeaseOf() {
	handle := func(ctx context.Context, t wakebell.Timer[Order]) error {
		return t.Settle(ctx, nil)
	}
	timer := wakebelltest.Timer(t, Orders, Order{"42", 995})
	require.NoError(t, handle(t.Context(), timer))
	settled, verdict := wakebelltest.LeaseOf(timer.Meta).Settled()
	require.True(t, settled)
	require.NoError(t, verdict)

	late := wakebelltest.Timer(t, Orders, Order{"42", 995})
	wakebelltest.LeaseOf(late.Meta).End(wakebell.ErrLeaseLost)
	require.ErrorIs(t, handle(t.Context(), late), wakebell.ErrLeaseLost)
}

func ExampleBody() {
	wakebelltest.Run(t, wakebell.Config{}, func(t *testing.T, w *wakebelltest.World) {
		require.NoError(t, placeOrder(t.Context(), w.Client(), Order{"42", 995}))
		order := wakebelltest.Body[Order](t, w.RequireUpcoming("orders", "42").Content)
		require.Equal(t, 995, order.Cents)
	})
}

// The bank is closed at first, and the second attempt is eight hours later.
func ExampleWorld_Advance() {
	b := &bank{open: false}
	wakebelltest.Run(t, b.config(), func(t *testing.T, w *wakebelltest.World) {
		require.NoError(t, placeOrder(t.Context(), w.Client(), Order{"42", 995}))
		w.Advance(72 * time.Hour)
		b.open = true
		w.Advance(8 * time.Hour)
		require.Equal(t, []string{"42"}, b.charged)
	})
}

// Without a node, a test can check what the code under test schedules.
func ExampleWorld_Upcoming() {
	wakebelltest.Run(t, wakebell.Config{}, func(t *testing.T, w *wakebelltest.World) {
		require.NoError(t, placeOrder(t.Context(), w.Client(), Order{"42", 995}))
		w.Advance(24 * time.Hour)
		upcoming := w.Upcoming("orders")
		require.Len(t, upcoming, 1)
		require.Equal(t, "42", upcoming[0].ID)
		require.Equal(t, 48*time.Hour, upcoming[0].In)
	})
}

func ExampleWorld_Delivered() {
	b := &bank{open: false}
	wakebelltest.Run(t, b.config(), func(t *testing.T, w *wakebelltest.World) {
		require.NoError(t, placeOrder(t.Context(), w.Client(), Order{"42", 995}))
		w.Advance(100 * time.Hour)
		for i, d := range w.Delivered("orders") {
			require.Equal(t, i+1, d.Attempt)
			require.Equal(t, wakebelltest.Retried, d.Outcome)
		}
	})
}

func ExampleWorld_RequireDelivered() {
	b := &bank{open: true}
	wakebelltest.Run(t, b.config(), func(t *testing.T, w *wakebelltest.World) {
		require.NoError(t, placeOrder(t.Context(), w.Client(), Order{"42", 995}))
		w.Advance(72 * time.Hour)
		require.Equal(t, wakebelltest.Acked, w.RequireDelivered("orders", "42").Outcome)
	})
}

func ExampleWorld_Dead() {
	b := &bank{open: true}
	wakebelltest.Run(t, b.config(), func(t *testing.T, w *wakebelltest.World) {
		require.NoError(t, placeOrder(t.Context(), w.Client(), Order{"42", 0}))
		w.Advance(72 * time.Hour)
		dead := w.Dead("orders")
		require.Len(t, dead, 1)
		require.Equal(t, "nothing to charge", dead[0].Reason)
	})
}

// A node crashes while its handler runs, and another node takes over.
func ExampleWorld_Crash() {
	slow := func(ctx context.Context, _ wakebell.Timer[Order]) error {
		select {
		case <-time.After(10 * time.Second):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	cfg := wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(Orders, slow)}}
	wakebelltest.Run(t, cfg, func(t *testing.T, w *wakebelltest.World) {
		require.NoError(t, placeOrder(t.Context(), w.Client(), Order{"42", 995}))
		w.Advance(72*time.Hour + 5*time.Second)
		w.Crash()
		require.Equal(t, wakebelltest.Crashed, w.RequireDelivered("orders", "42").Outcome)

		w.Restart()
		w.Advance(time.Minute) // the lease expires, and the second delivery takes 10 s
		again := w.RequireDelivered("orders", "42")
		require.Equal(t, 2, again.Attempt)
		require.Equal(t, wakebelltest.Acked, again.Outcome)
	})
}

// One of two nodes is stopped for a deployment.
func ExampleWorld_Start() {
	b := &bank{open: true}
	wakebelltest.Run(t, b.config(), func(t *testing.T, w *wakebelltest.World) {
		w.Start(b.config())
		require.NoError(t, placeOrder(t.Context(), w.Client(), Order{"42", 995}))
		require.NoError(t, w.Nodes()[0].Stop())
		w.Advance(72 * time.Hour)
		require.Equal(t, 2, w.RequireDelivered("orders", "42").Node)
	})
}
