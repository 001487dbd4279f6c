package dashboard_test

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/dashboard"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// slow holds the overviews of topics back until its channel is closed.
type slow struct {
	*wakebell.Client
	until chan struct{}
}

func (s slow) Overview(ctx context.Context, topics ...string) ([]wakebelltype.Overview, error) {
	select {
	case <-s.until:
		return s.Client.Overview(ctx, topics...)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Pages with the totals of all topics do not wait for them; they have the browser load
// them again.
func TestPagesDoNotWaitForTotals(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.schedule("invoices", "inv-1", time.Hour, "x")
	held := slow{s.client, make(chan struct{})}
	s.serve(dashboard.Operators{Timers: held})
	for _, page := range []string{"", "dead"} {
		a := s.send(http.MethodGet, s.path(page), nil)
		require.Equal(t, http.StatusOK, a.status)
		require.Equal(t, "1", a.header.Get("Refresh"))
		require.Contains(t, a.body, "are being read")
	}
	close(held.until)
	require.Eventually(t, func() bool { return strings.Contains(s.get(""), "1 pending") }, time.Minute, 10*time.Millisecond)
}

// partial lists the topics of some servers, and then why those of others are missing.
type partial struct{ *wakebell.Client }

func (p partial) Topics(ctx context.Context, discover bool, page wakebelltype.Page) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for name, err := range p.Client.Topics(ctx, discover, page) {
			if !yield(name, err) {
				return
			}
		}
		yield("", fmt.Errorf("10.0.0.7: %w", wakebell.ErrUnavailable))
	}
}

func TestPagesSayThatTopicsAreMissing(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.schedule("invoices", "inv-1", time.Hour, "x")
	s.serve(dashboard.Operators{Timers: partial{s.client}})
	require.Contains(t, s.get("topics"), "invoices")
	for _, page := range []string{"topics", ""} {
		require.Eventually(t, func() bool {
			return strings.Contains(s.get(page), "Topics on servers that do not answer are missing: 10.0.0.7")
		}, time.Minute, 10*time.Millisecond, page)
	}
}

// A Redis that is gone is reported on a page that reads nothing, until it is back.
func TestPageReportsThatRedisIsGone(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client, err := wakebell.NewClient(conntest.New(t, server.Client(t), connection.Config{}))
	require.NoError(t, err)
	s := open(t)
	s.serve(dashboard.Operators{Timers: client})
	reported := func() bool { return !strings.Contains(s.get("jobs"), `id="outage" class="error" role="alert" hidden`) }
	require.False(t, reported())
	server.Kill()
	require.Eventually(t, reported, time.Minute, 10*time.Millisecond)
	require.Contains(t, s.send(http.MethodGet, s.path("audit"), nil).body, "does not answer</b> since")
	server.Restart(t)
	require.Eventually(t, func() bool { return !reported() }, time.Minute, 10*time.Millisecond)
}
