package webhook

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/wakebelltest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// pipes is a listener whose connections are in memory, as virtual time needs them.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// virtually runs a test in virtual time, with a Webhook that the topic bills uses.
func virtually(t *testing.T, cfg Config, opts []wakebell.HandlerOption, answer func(http.ResponseWriter, received), test func(*testing.T, *wakebelltest.World)) {
	t.Helper()
	var hook *Webhook // made in the bubble
	handle := func(ctx context.Context, timer wakebell.Timer[[]byte]) error { return hook.Handle(ctx, timer) }
	handlers := wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(bills, handle, opts...)}}
	wakebelltest.Run(t, handlers, func(t *testing.T, w *wakebelltest.World) {
		listener := &pipes{make(chan net.Conn), make(chan struct{})}
		server := &http.Server{Handler: verified(t, answer), ReadHeaderTimeout: time.Minute}
		go func() { _ = server.Serve(listener) }() // until it is closed
		hook = hookTo(t, "http://127.0.0.1", cfg)
		hook.transport.DialContext = listener.dial
		test(t, w)
		hook.Close()
		require.NoError(t, server.Close())
	})
}

// schedule makes a timer due after a second.
func schedule(t *testing.T, w *wakebelltest.World) {
	t.Helper()
	_, err := bills.Schedule(t.Context(), w.Client(), []byte("x"), wakebell.ID("inv-42"), wakebell.In(time.Second))
	require.NoError(t, err)
}

func TestFailedRequestIsRetriedAfterBackoffOrRetryAfter(t *testing.T) {
	t.Parallel()
	var requests []received
	var at []time.Time
	virtually(t, Config{}, []wakebell.HandlerOption{wakebell.RetryBackoff(7*time.Second, time.Minute)}, func(w http.ResponseWriter, r received) {
		requests, at = append(requests, r), append(at, time.Now())
		switch len(requests) {
		case 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 2:
			w.Header().Set("Retry-After", "90")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}, func(t *testing.T, w *wakebelltest.World) {
		schedule(t, w)
		w.Advance(10 * time.Minute)
		require.Len(t, requests, 3)
		require.Equal(t, 7*time.Second, at[1].Sub(at[0]))
		require.Equal(t, 90*time.Second, at[2].Sub(at[1]))
		for i, r := range requests {
			require.Equal(t, requests[0].Header.Get("Webhook-Id"), r.Header.Get("Webhook-Id"))
			require.Equal(t, requests[0].Header.Get("Wakebell-Due"), r.Header.Get("Wakebell-Due"))
			require.Equal(t, []string{string(rune('1' + i))}, r.Header["Wakebell-Attempt"])
		}
		require.NotEqual(t, requests[0].Header.Get("Webhook-Timestamp"), requests[1].Header.Get("Webhook-Timestamp"))
		schedule(t, w) // the id again
		w.Advance(time.Minute)
		require.Len(t, requests, 4)
		require.NotEqual(t, requests[0].Header.Get("Webhook-Id"), requests[3].Header.Get("Webhook-Id"), "another message")
	})
}

func TestRejectedTimerIsDeadLetter(t *testing.T) {
	t.Parallel()
	virtually(t, Config{}, nil, func(w http.ResponseWriter, _ received) {
		http.Error(w, "no such customer", http.StatusUnprocessableEntity)
	}, func(t *testing.T, w *wakebelltest.World) {
		schedule(t, w)
		w.Advance(time.Minute)
		dead, err := w.Client().LastDead(t.Context(), "bills", 1)
		require.NoError(t, err)
		require.Len(t, dead, 1)
		require.Equal(t, "POST to 127.0.0.1: 422 Unprocessable Entity: no such customer", dead[0].Reason)
	})
}

func TestLeaseIsExtendedWhileRequestRuns(t *testing.T) {
	t.Parallel()
	requests := 0
	virtually(t, Config{Timeout: 30 * time.Second}, []wakebell.HandlerOption{wakebell.LeaseTTL(2 * time.Second)}, func(http.ResponseWriter, received) {
		requests++
		<-time.After(20 * time.Second)
	}, func(t *testing.T, w *wakebelltest.World) {
		schedule(t, w)
		w.Advance(time.Minute)
		require.Equal(t, 1, requests)
		require.Equal(t, wakebelltest.Acked, w.RequireDelivered("bills", "inv-42").Outcome)
	})
}

func TestSlowAnswerIsRetriedAfterTimeout(t *testing.T) {
	t.Parallel()
	var at []time.Time
	virtually(t, Config{Timeout: 5 * time.Second}, []wakebell.HandlerOption{wakebell.RetryBackoff(time.Second, time.Second), wakebell.MaxAttempts(2)}, func(_ http.ResponseWriter, r received) {
		at = append(at, time.Now())
		<-r.Context().Done()
	}, func(t *testing.T, w *wakebelltest.World) {
		schedule(t, w)
		w.Advance(time.Minute)
		require.Len(t, at, 2)
		require.Equal(t, 6*time.Second, at[1].Sub(at[0]))
		dead, err := w.Client().LastDead(t.Context(), "bills", 1)
		require.NoError(t, err)
		require.Len(t, dead, 1)
		require.Contains(t, dead[0].Reason, "POST to 127.0.0.1: no answer within 5s")
	})
}

func TestSlowBodyDoesNotHoldTimer(t *testing.T) {
	t.Parallel()
	var began, ended time.Time
	virtually(t, Config{}, nil, func(w http.ResponseWriter, r received) {
		began = time.Now()
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, "x")
			_ = http.NewResponseController(w).Flush()
			<-time.After(100 * time.Millisecond)
		}
		ended = time.Now()
	}, func(t *testing.T, w *wakebelltest.World) {
		schedule(t, w)
		w.Advance(time.Minute)
		require.Equal(t, wakebelltest.Acked, w.RequireDelivered("bills", "inv-42").Outcome, "2xx is success, even if no end follows")
		require.LessOrEqual(t, ended.Sub(began), drainTime+time.Second)
	})
}

func TestRequestEndsWithLease(t *testing.T) {
	t.Parallel()
	cancelled := false
	virtually(t, Config{}, nil, func(_ http.ResponseWriter, r received) {
		<-r.Context().Done()
		cancelled = true
	}, func(t *testing.T, w *wakebelltest.World) {
		schedule(t, w)
		w.Advance(2 * time.Second)
		_, err := bills.Cancel(t.Context(), w.Client(), "inv-42")
		require.NoError(t, err)
		w.Advance(10 * time.Second) // less than the timeout
		require.True(t, cancelled)
	})
}

// A webhook is a handler as any other: its failures count for the breaker and the counters.
func TestFailuresOpenBreakerAndAreCounted(t *testing.T) {
	t.Parallel()
	requests := 0
	opts := []wakebell.HandlerOption{
		wakebell.RetryBackoff(time.Second, time.Second),
		wakebell.Breaker(wakebelltype.Breaker{FailureRatio: 0.5, Deliveries: 3, OpenFor: 30 * time.Second}),
	}
	virtually(t, Config{}, opts, func(w http.ResponseWriter, _ received) {
		requests++
		w.WriteHeader(http.StatusInternalServerError)
	}, func(t *testing.T, w *wakebelltest.World) {
		schedule(t, w)
		w.Advance(20 * time.Second)
		require.Equal(t, 3, requests)
		counters := w.Nodes()[0].System().Counters()["bills"]
		require.EqualValues(t, 3, counters.Delivered)
		require.EqualValues(t, 3, counters.Retried)
	})
}
