package dashboard_test

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
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
	require.Eventually(t, func() bool { return strings.Contains(s.get(""), "1 pending") }, patience, 10*time.Millisecond)
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
		}, patience, 10*time.Millisecond, page)
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
	require.Eventually(t, reported, patience, 10*time.Millisecond)
	require.Contains(t, s.send(http.MethodGet, s.path("audit"), nil).body, "does not answer</b> since")
	server.Restart(t)
	require.Eventually(t, func() bool { return !reported() }, patience, 10*time.Millisecond)
}

// A page that may not read something says so; a search does not say that there is nothing.
func TestPagesReportMissingRights(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client, err := wakebell.NewClient(conntest.New(t, server.Client(t), connection.Config{}))
	require.NoError(t, err)
	s := open(t)
	s.serve(dashboard.Operators{Timers: client, Queues: client.Queues(), Schedules: client.Schedules()})
	require.NoError(t, server.Client(t).Do(t.Context(), "ACL", "SETUSER", "default", "-@all", "+ping", "+acl").Err())
	for page, status := range map[string]int{
		"": 403, "topics": 403, "topics?sort=due": 403, "topic?name=a": 403, "timers?topic=a": 403, "timer?topic=a&id=b": 403, "dead": 403,
		"dead?topic=a": 403, "queues": 200, "queue?name=a": 403, "schedules": 403, "nodes": 403, "audit": 403, "doctor": 200, "search?q=a": 200, "search?q=a+b": 200,
	} {
		a := s.send(http.MethodGet, s.path("")+page, nil)
		require.Equal(t, status, a.status, page)
		require.Contains(t, a.body, "NOPERM", page)
	}
	require.NotContains(t, s.get("search", "q", "a"), "Nothing is called")
}

// broken panics instead of reading topics.
type broken struct{ *wakebell.Client }

func (broken) Overview(context.Context, ...string) ([]wakebelltype.Overview, error) {
	panic("off by one")
}

func (broken) History(context.Context, string, wakebelltype.HistoryFilter, wakebelltype.Page) iter.Seq2[wakebelltype.Attempt, error] {
	panic("off by one")
}

func TestPanicOfPageIsAnError(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.schedule("invoices", "inv-1", time.Hour, "x")
	s.serve(dashboard.Operators{Timers: broken{s.client}})
	for _, page := range []string{"topic?name=invoices", "timer?topic=invoices&id=inv-1"} { // in a cache, and in the page itself
		a := s.send(http.MethodGet, s.path("")+page, nil)
		require.Equal(t, http.StatusInternalServerError, a.status, page)
		require.Contains(t, a.body, "off by one", page)
	}
}

// reading says when a reading of all topics has begun, and when its context has ended.
type reading struct {
	*wakebell.Client
	begun, ended chan struct{}
}

func (r reading) Overview(ctx context.Context, _ ...string) ([]wakebelltype.Overview, error) {
	close(r.begun)
	<-ctx.Done()
	close(r.ended)
	return nil, ctx.Err()
}

func TestCloseEndsReads(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.schedule("invoices", "inv-1", time.Hour, "x")
	r := reading{s.client, make(chan struct{}), make(chan struct{})}
	d, err := dashboard.New(conntest.WithoutRedis(t, connection.Config{}), dashboard.Operators{Timers: r}, dashboard.Config{})
	require.NoError(t, err)
	request := httptest.NewRequest(http.MethodGet, "http://localhost/dead", http.NoBody)
	request.RemoteAddr = "127.0.0.1:1"
	page := httptest.NewRecorder()
	d.ServeHTTP(page, request)
	require.Equal(t, http.StatusOK, page.Code)
	<-r.begun
	d.Close()
	<-r.ended
}
