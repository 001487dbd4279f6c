package dashboard_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/dashboard"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/wakebelltype"
)

// many stores a timer on each of 130 topics, and more on the last ones.
func (s *site) many() {
	var drafts []wakebell.Draft
	for i := range 130 {
		drafts = append(drafts, wakebell.NewTopic[string](fmt.Sprintf("topic-%03d", i)).Draft("x", wakebell.ID("later"), wakebell.In(time.Hour)))
	}
	for i := range 3 {
		drafts = append(drafts, wakebell.NewTopic[string]("topic-128").Draft("x", wakebell.ID(fmt.Sprint("due-", i)), wakebell.At(time.Now().Add(-time.Second))))
	}
	drafts = append(drafts, wakebell.NewTopic[string]("topic-129").Draft("x", wakebell.ID("only-here"), wakebell.In(0)))
	_, err := s.client.Schedule(s.t.Context(), drafts...)
	require.NoError(s.t, err)
}

// node runs a node with a handler.
func (s *site) node(handler wakebell.Handler) *wakebell.System {
	sys, err := wakebell.New(actor.NewActorSystem(), s.client.Connection(), wakebell.Config{Handlers: []wakebell.Handler{handler}})
	require.NoError(s.t, err)
	require.NoError(s.t, sys.Start(s.t.Context()))
	return sys
}

var topicNames = regexp.MustCompile(`topic-\d{3}</a>`)

// order returns the topics of a page in their order.
func order(page string) (names []string) {
	for _, name := range topicNames.FindAllString(page, -1) {
		names = append(names, strings.TrimSuffix(name, "</a>"))
	}
	return names
}

func TestTableOfTopicsIsSortedOverAllTopics(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.many()
	s.kill("topic-127", map[string]string{"a": "refused", "b": "refused"})
	shows := func(want []string, params ...string) (page string) { // the counts are read meanwhile
		t.Helper()
		require.Eventually(t, func() bool {
			page = s.get("topics", params...)
			all := order(page)
			return len(all) >= len(want) && slices.Equal(all[:len(want)], want)
		}, patience, 50*time.Millisecond, "%v: %v", params, want)
		return page
	}
	shows([]string{"topic-000", "topic-001"})
	shows([]string{"topic-128", "topic-129"}, "sort", "due")
	shows([]string{"topic-127"}, "sort", "dead")
	shows([]string{"topic-128"}, "sort", "oldest")
	page := shows([]string{"topic-127"}, "only", "problems")
	require.Len(t, order(page), 1)
	require.Contains(t, page, "Show all")
	require.Contains(t, s.get("topics"), "1 with problems")
	require.Contains(t, s.get(""), "topics with problems")
	require.Contains(t, s.get("topics", "only", "problems", "q", "topic-000"), "No topic with this name has problems")
	a := s.send(http.MethodGet, s.path("topics", "sort", "size"), nil)
	require.Equal(t, http.StatusBadRequest, a.status)
	require.Contains(t, a.body, "want one of name, due, oldest, late, dead, rate")

	seen, address := 0, s.path("topics", "sort", "due")
	for range 3 {
		body := s.send(http.MethodGet, address, nil).body
		seen += len(order(body))
		address = nextPage(body)
	}
	require.Equal(t, 130, seen)
	require.Empty(t, address)
}

// The search by an id alone looks at all topics.
func TestSearchLooksAtAllTopics(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.many()
	want := s.path("timer", "topic", "topic-129", "id", "only-here")
	require.Eventually(t, func() bool { // on a slow machine, the time is not enough for all
		return s.send(http.MethodGet, s.path("search", "q", "only-here"), nil).header.Get("Location") == want
	}, patience, 50*time.Millisecond)
	require.Eventually(t, func() bool {
		return strings.Contains(s.get("search", "q", "nothing"), "none of 130 topics has a timer with this id")
	}, patience, 50*time.Millisecond)
}

// hanging answers no Get.
type hanging struct{ *wakebell.Client }

func (h hanging) Get(ctx context.Context, _, _ string) (wakebell.Info, wakebell.Content, error) {
	<-ctx.Done()
	return wakebell.Info{}, wakebell.Content{}, ctx.Err()
}

func TestSearchSaysThatItDidNotLookAtAllTopics(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.many()
	s.serve(dashboard.Operators{Timers: hanging{s.client}})
	require.Regexp(t, `looked for in \d+ of 130 topics`, s.get("search", "q", "nothing"))
}

func TestOverviewCountsWholeCluster(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.many()
	handled := make(chan string, 10)
	topic := wakebell.NewTopic[[]byte]("topic-129")
	sys := s.node(wakebell.Handle(topic, func(_ context.Context, timer wakebell.Timer[[]byte]) error {
		handled <- timer.ID
		return nil
	}))
	require.Equal(t, "only-here", <-handled)
	page := ""
	require.Eventually(t, func() bool {
		page = s.get("")
		return strings.Contains(page, "1 handled") && strings.Contains(page, ">topic-129</a>") && strings.Contains(page, "Outages of Redis")
	}, patience, 100*time.Millisecond, "the node of the last topic, and what it handled")
	require.NotContains(t, page, "The charts are of")
	require.NoError(t, sys.Stop())
}

// A queue that is not configured is listed, and its dead letters are on the overview.
func TestListedQueuesAreShown(t *testing.T) {
	t.Parallel()
	s := open(t)
	var once sync.Once
	done := make(chan struct{})
	mails := queue.New[[]byte]("mails")
	_, err := mails.Publish(t.Context(), s.client.Queues(), []byte("x"))
	require.NoError(t, err)
	sys := s.node(wakebell.HandleQueue(mails, func(context.Context, wakebell.Timer[[]byte]) error {
		once.Do(func() { close(done) })
		return wakebell.Reject(fmt.Errorf("never"))
	}))
	<-done
	require.Eventually(t, func() bool { return strings.Contains(s.get(""), "dead letters of queues") }, patience, 100*time.Millisecond)
	require.Contains(t, s.get("queues"), ">mails</a>")
	require.NoError(t, sys.Stop())
}

// few fails where more topics are read than a page of the table shows.
type few struct {
	*wakebell.Client
	t *testing.T
}

func (f few) Overview(ctx context.Context, topics ...string) ([]wakebelltype.Overview, error) {
	assert.LessOrEqual(f.t, len(topics), 50)
	return f.Client.Overview(ctx, topics...)
}

func TestTableByNameReadsShownTopicsOnly(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.many()
	s.serve(dashboard.Operators{Timers: few{s.client, t}})
	require.Len(t, order(s.get("topics")), 50)
	require.Len(t, order(s.get("topics", "from", "100")), 30)
	require.Len(t, order(s.get("topics", "q", "topic-12")), 10)
}
