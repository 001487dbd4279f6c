package dashboard

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// hanging is a Redis with one topic that may stop to answer.
type hanging struct {
	Timers
	hangs atomic.Bool
}

func (h *hanging) wait(ctx context.Context) error {
	if !h.hangs.Load() {
		return nil
	}
	<-ctx.Done()
	return wakebell.ErrUnavailable
}

func (h *hanging) Topics(ctx context.Context, _ bool, _ wakebelltype.Page) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if err := h.wait(ctx); err != nil {
			yield("", err)
			return
		}
		yield("invoices", nil)
	}
}

func (h *hanging) Overview(ctx context.Context, topics ...string) ([]wakebelltype.Overview, error) {
	return make([]wakebelltype.Overview, len(topics)), h.wait(ctx)
}

func (h *hanging) Throughput(ctx context.Context, _ string, _ time.Duration) (wakebelltype.Throughput, error) {
	return wakebelltype.Throughput{}, h.wait(ctx)
}

func (h *hanging) Audit(ctx context.Context, _ wakebelltype.AuditFilter, _ wakebelltype.Page) iter.Seq2[wakebelltype.AuditEntry, error] {
	return func(yield func(wakebelltype.AuditEntry, error) bool) {
		if err := h.wait(ctx); err != nil {
			yield(wakebelltype.AuditEntry{}, err)
		}
	}
}

func openHanging(t *testing.T) (*Dashboard, *hanging) {
	t.Helper()
	h := &hanging{}
	t.Cleanup(func() { <-time.After(2 * time.Minute) }) // reads of an outage end by themselves
	d, err := New(conntest.WithoutRedis(t, connection.Config{}), Operators{Timers: h}, Config{})
	require.NoError(t, err)
	return d, h
}

// localRequest is a request from this machine.
func localRequest(ctx context.Context, target string) *http.Request {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+target, nil)
	r.RemoteAddr = "127.0.0.1:1"
	return r
}

func load(t *testing.T, d *Dashboard, target string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	d.ServeHTTP(w, localRequest(t.Context(), target))
	return w.Code, w.Body.String()
}

const (
	banner  = `role="alert"><b>Redis, or the node of this dashboard, does not answer</b>`
	visible = "What is shown was read"
)

// In an outage every page has the banner: those that are shown from caches, with their
// age, those that cannot be read, and those that read nothing.
func TestEveryPageReportsOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, h := openHanging(t)
		for _, page := range []string{"/", "/topics", "/audit", "/jobs", "/nothing"} {
			_, body := load(t, d, page)
			require.NotContains(t, body, banner, page)
		}
		probe := func(path string) (int, string) {
			w := httptest.NewRecorder()
			d.HealthHandler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			return w.Code, w.Body.String()
		}
		ready, _ := probe("/readyz")
		require.Equal(t, http.StatusOK, ready)
		h.hangs.Store(true)
		<-time.After(pulseAge)
		status, body := load(t, d, "/")
		ready, problems := probe("/readyz")
		require.Equal(t, http.StatusServiceUnavailable, ready)
		require.Contains(t, problems, "does not answer since")
		live, _ := probe("/livez")
		require.Equal(t, http.StatusOK, live)
		require.Equal(t, http.StatusOK, status)
		require.Contains(t, body, banner)
		require.Contains(t, body, visible)
		require.Contains(t, body, "2 s ago")
		for page, want := range map[string]int{"/audit": 503, "/topics": 200, "/jobs": 200, "/nothing": 404} {
			<-time.After(time.Minute) // nothing is in a cache any more
			began := time.Now()
			status, body := load(t, d, page)
			require.Equal(t, want, status, page)
			require.Contains(t, body, banner, page)
			require.Equal(t, want == 200, strings.Contains(body, visible), page)
			require.LessOrEqual(t, time.Since(began), outageLimit, page)
		}
		h.hangs.Store(false)
		<-time.After(pulseAge + outageLimit)
		load(t, d, "/jobs") // checks
		synctest.Wait()
		_, body = load(t, d, "/jobs")
		require.NotContains(t, body, banner)
	})
}

// streamed is the answer to a browser that follows changes.
type streamed struct {
	*httptest.ResponseRecorder
	mu   sync.Mutex
	text strings.Builder
}

func (s *streamed) Write(b []byte) (int, error) { return s.WriteString(string(b)) }
func (s *streamed) WriteString(t string) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return io.WriteString(&s.text, t)
}
func (s *streamed) all() string { s.mu.Lock(); defer s.mu.Unlock(); return s.text.String() }

// A stream says within 3 s that Redis does not answer, also of a page that follows
// nothing, and says when it answers again.
func TestStreamsReportOutageWithin3Seconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, h := openHanging(t)
		ctx, cancel := context.WithCancel(t.Context())
		var streams []*streamed
		for _, of := range []string{"overview", "redis", "jobs"} {
			s := &streamed{ResponseRecorder: httptest.NewRecorder()}
			streams = append(streams, s)
			go d.ServeHTTP(s, localRequest(ctx, "/live?of="+of))
		}
		<-time.After(1500 * time.Millisecond) // between two checks
		since := func(name string) (counts []int) {
			for _, s := range streams {
				counts = append(counts, strings.Count(s.all(), "event: "+name+"\n"))
			}
			return counts
		}
		require.Equal(t, []int{0, 0, 0}, since("outage"))
		require.Equal(t, []int{1, 1, 1}, since("answers"), "each begins with the state")
		h.hangs.Store(true)
		<-time.After(3 * time.Second)
		require.Equal(t, []int{1, 1, 1}, since("outage"))
		<-time.After(time.Minute)
		require.Equal(t, []int{1, 1, 1}, since("outage"), "once")
		h.hangs.Store(false)
		<-time.After(4 * time.Second)
		require.Equal(t, []int{2, 2, 2}, since("answers"))
		cancel()
		d.Close()
	})
}

// A topic whose name has a byte 0 is not taken for two others, or for a queue.
func TestCachesTellNamesApart(t *testing.T) {
	t.Parallel()
	d, err := New(conntest.WithoutRedis(t, connection.Config{}), Operators{Timers: &hanging{}, Queues: failing{}}, Config{})
	require.NoError(t, err)
	t.Cleanup(d.Close)
	_, err = d.readTopics(t.Context(), []string{"a", "b"})
	require.NoError(t, err)
	o, err := d.readTopic(t.Context(), "a\x00b")
	require.NoError(t, err)
	require.Equal(t, "a\x00b", o.Topic)
	_, err = d.throughput(t.Context(), "queue\x00a", time.Hour)
	require.NoError(t, err)
	_, err = d.queueThroughput(t.Context(), "a", time.Hour)
	require.ErrorIs(t, err, wakebell.ErrForbidden)
}

// failing are queues whose counts may not be read.
type failing struct{ Queues }

func (failing) Throughput(context.Context, wakebelltype.QueueKeys, time.Duration) (wakebelltype.Throughput, error) {
	return wakebelltype.Throughput{}, wakebell.ErrForbidden
}

// A stream ends soon after its principal has lost the right to read.
func TestStreamEndsWithItsRight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var withdrawn atomic.Bool
		t.Cleanup(func() { <-time.After(2 * time.Minute) })
		d, err := New(conntest.WithoutRedis(t, connection.Config{}), Operators{Timers: &hanging{}}, Config{
			Authorize: func(*http.Request) (Principal, Role, error) {
				if withdrawn.Load() {
					return "vera", RoleNone, nil
				}
				return "vera", RoleViewer, nil
			},
		})
		require.NoError(t, err)
		defer d.Close()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			d.ServeHTTP(&streamed{ResponseRecorder: httptest.NewRecorder()}, localRequest(t.Context(), "/live?of=jobs"))
		}()
		over := func() bool {
			<-time.After(keepAlive + time.Second)
			select {
			case <-ended:
				return true
			default:
				return false
			}
		}
		require.False(t, over())
		withdrawn.Store(true)
		require.True(t, over())
	})
}

// The page of a refused request shows no navigation and no state, even if Authorize has returned
// a role beside the error.
func TestRefusedRequestShowsNothingElse(t *testing.T) {
	t.Parallel()
	for _, err := range []error{ErrUnauthenticated, errors.New("the session has expired")} {
		d, invalid := New(conntest.WithoutRedis(t, connection.Config{}), Operators{Timers: &hanging{}}, Config{
			Writable:  true,
			Authorize: func(*http.Request) (Principal, Role, error) { return "otto", RoleOperator, err },
		})
		require.NoError(t, invalid)
		t.Cleanup(d.Close)
		w := httptest.NewRecorder()
		d.ServeHTTP(w, localRequest(t.Context(), "/topics"))
		require.GreaterOrEqual(t, w.Code, 401)
		require.NotContains(t, w.Body.String(), `href="/topics"`)
		require.NotContains(t, w.Body.String(), "/live")
		require.NotContains(t, w.Header().Get("Set-Cookie"), "wakebell_csrf")
	}
}

// A browser cannot make the dashboard read the events of topics that do not exist.
func TestInventedTopicsAreNotFollowed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, _ := openHanging(t)
		var tailed sync.Map
		d.feeds.tail = func(ctx context.Context, topic string) iter.Seq2[wakebelltype.Event, error] {
			tailed.Store(topic, true)
			return func(func(wakebelltype.Event, error) bool) { <-ctx.Done() }
		}
		ctx, cancel := context.WithCancel(t.Context())
		go d.ServeHTTP(&streamed{ResponseRecorder: httptest.NewRecorder()}, localRequest(ctx, "/live?of=overview&feed=invoices&feed=invented&feed=made-up"))
		<-time.After(5 * time.Second)
		var topics []any
		tailed.Range(func(topic, _ any) bool { topics = append(topics, topic); return true })
		require.Equal(t, []any{"invoices"}, topics)
		cancel()
		synctest.Wait()
		d.Close()
	})
}
