package remote_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/wakebelltype"
)

// cursors reads a listing in pages of two, each after the cursor of the page before,
// and returns all cursors.
func cursors[T any](t *testing.T, list func(wakebelltype.Page) iter.Seq2[T, error], of func(T) string) (found []string) {
	t.Helper()
	for page := (wakebelltype.Page{Limit: 2}); ; page.After = found[len(found)-1] {
		n := len(found)
		for item, err := range list(page) {
			require.NoError(t, err)
			found = append(found, of(item))
		}
		if len(found) < n+2 {
			return found
		}
	}
}

// requirePages fails unless a listing has n items, and pages of it have the same, from
// both clients.
func requirePages[T any](t *testing.T, n int, here, elsewhere func(wakebelltype.Page) iter.Seq2[T, error], of func(T) string) {
	t.Helper()
	var whole []string
	for item, err := range here(wakebelltype.Page{}) {
		require.NoError(t, err)
		require.NotEmpty(t, of(item))
		require.NotContains(t, whole, of(item))
		whole = append(whole, of(item))
	}
	require.Len(t, whole, n)
	require.Equal(t, whole, cursors(t, here, of))
	require.Equal(t, whole, cursors(t, elsewhere, of))
	for _, list := range []func(wakebelltype.Page) iter.Seq2[T, error]{here, elsewhere} {
		for _, err := range list(wakebelltype.Page{Limit: -1}) {
			require.ErrorIs(t, err, wakebell.ErrInvalid)
		}
	}
}

func TestListingsContinueAfterCursor(t *testing.T) {
	t.Parallel()
	n := prefixed(t)
	ctx, here, elsewhere := t.Context(), n.Client(), dial(t, n)
	const items = 5
	rdb := redistest.Shared(t)
	for i := range items {
		topic := wakebell.NewTopic[string](fmt.Sprintf("topic-%d", i))
		_, err := here.Schedule(ctx, topic.Draft("x", wakebell.ID("one"), wakebell.In(time.Hour)),
			n.topic.Draft("x", wakebell.ID(fmt.Sprint(i)), wakebell.In(time.Hour)))
		require.NoError(t, err)
		require.NoError(t, here.Schedules().Put(ctx, n.topic.Recurring(fmt.Sprintf("nightly-%d", i), recurring.Rule{Cron: "0 3 * * *"}, "x")))
		require.NoError(t, rdb.XAdd(ctx, &redis.XAddArgs{Stream: "timers_dead:" + here.Prefix() + n.topic.Name(), Values: []string{"id", "x"}}).Err())
	}
	of := n.topic.Name()

	t.Run("timers", func(t *testing.T) {
		list := func(c wakebell.TimerClient) func(wakebelltype.Page) iter.Seq2[wakebell.Info, error] {
			return func(p wakebelltype.Page) iter.Seq2[wakebell.Info, error] {
				return c.List(ctx, of, wakebell.Filter{}, p)
			}
		}
		requirePages(t, items, list(here), list(elsewhere), func(i wakebell.Info) string { return i.Cursor })
	})
	t.Run("topics", func(t *testing.T) {
		prefix := len(here.Prefix())
		local := func(p wakebelltype.Page) iter.Seq2[string, error] {
			p.After = here.Prefix() + p.After
			return func(yield func(string, error) bool) {
				for name, err := range here.Topics(ctx, false, p) {
					if len(name) < prefix || name[:prefix] != here.Prefix() || !yield(name[prefix:], err) {
						return // of another test
					}
				}
			}
		}
		over := func(p wakebelltype.Page) iter.Seq2[string, error] { return elsewhere.Topics(ctx, false, p) }
		var names []string
		for name, err := range over(wakebelltype.Page{}) {
			require.NoError(t, err)
			names = append(names, name)
		}
		require.Len(t, names, items+1)
		require.IsIncreasing(t, names)
		require.Equal(t, names, cursors(t, over, func(name string) string { return name }))
		require.Equal(t, names, cursors(t, local, func(name string) string { return name }))
	})
	t.Run("dead letters", func(t *testing.T) {
		list := func(c wakebell.Operator) func(wakebelltype.Page) iter.Seq2[wakebell.DeadLetter, error] {
			return func(p wakebelltype.Page) iter.Seq2[wakebell.DeadLetter, error] {
				return c.DeadLetters(ctx, of, wakebelltype.DeadFilter{}, p)
			}
		}
		requirePages(t, items, list(here), list(elsewhere), func(d wakebell.DeadLetter) string { return d.Cursor })
	})
	t.Run("recurring schedules", func(t *testing.T) {
		list := func(s recurring.Operator) func(wakebelltype.Page) iter.Seq2[recurring.State, error] {
			return func(p wakebelltype.Page) iter.Seq2[recurring.State, error] { return s.List(ctx, p) }
		}
		requirePages(t, items, list(here.Schedules()), list(elsewhere.Schedules()), func(s recurring.State) string { return s.Cursor })
	})
}

func TestListingsOfGatesContinueAfterCursor(t *testing.T) {
	t.Parallel()
	n := prefixed(t)
	ctx := t.Context()
	own := redistest.Name(t)
	for i := range 3 {
		turn, err := n.Gates().Acquire(ctx, fmt.Sprintf("%s-%d", own, i))
		require.NoError(t, err)
		t.Cleanup(func() { _ = turn.Release(context.WithoutCancel(ctx)) })
	}
	for _, of := range []gate.Operator{n.Gates(), dial(t, n).Gates()} {
		list := func(p wakebelltype.Page) iter.Seq2[wakebelltype.GateInfo, error] {
			if p.After == "" {
				p.After = own
			}
			return func(yield func(wakebelltype.GateInfo, error) bool) {
				for g, err := range of.List(ctx, p) {
					if err == nil && (len(g.Name) < len(own) || g.Name[:len(own)] != own) {
						return // of another test
					}
					if !yield(g, err) {
						return
					}
				}
			}
		}
		require.Equal(t, []string{own + "-0", own + "-1", own + "-2"},
			cursors(t, list, func(g wakebelltype.GateInfo) string { return g.Cursor }))
	}
}

func TestListingsOfQueuesContinueAfterCursor(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	ctx, here, elsewhere := t.Context(), n.Client().Queues(), dial(t, n).Queues()
	q := queue.New[string](redistest.Name(t))
	for i := range 5 {
		_, err := here.Publish(ctx, q.Draft(fmt.Sprint(i)))
		require.NoError(t, err)
	}
	messages := func(c queue.Operator) func(wakebelltype.Page) iter.Seq2[wakebelltype.QueueMessage, error] {
		return func(p wakebelltype.Page) iter.Seq2[wakebelltype.QueueMessage, error] {
			return c.Messages(ctx, q.Keys(), false, p)
		}
	}
	requirePages(t, 5, messages(here), messages(elsewhere), func(m wakebelltype.QueueMessage) string { return m.Cursor })

	addDeadLetters(t, q.Keys(), "a", "b", "c", "d")
	dead := func(c queue.Operator) func(wakebelltype.Page) iter.Seq2[wakebelltype.QueueDeadLetter, error] {
		return func(p wakebelltype.Page) iter.Seq2[wakebelltype.QueueDeadLetter, error] {
			return c.DeadLetters(ctx, q.Keys(), p)
		}
	}
	requirePages(t, 4, dead(here), dead(elsewhere), func(l wakebelltype.QueueDeadLetter) string { return l.Cursor })
	for _, err := range elsewhere.Messages(ctx, q.Keys(), false, wakebelltype.Page{After: "x"}) {
		require.ErrorIs(t, err, wakebell.ErrInvalid)
	}
}

// A listing names only what its reader may read, also in the cursor of a page.
func TestCursorNamesNoHiddenSchedule(t *testing.T) {
	t.Parallel()
	name := redistest.Name(t)
	n := serveHTTP(t, withRights(t, "tests * *\nmallory read schedule:"+name+"-seen*"))
	for _, of := range []string{"-hidden", "-seen1", "-seen2", "-zhidden"} {
		schedule := wakebell.NewTopic[string](name).Recurring(name+of, recurring.Rule{Every: time.Hour}, "x")
		require.NoError(t, n.Client().Schedules().Put(t.Context(), schedule))
		t.Cleanup(func() { _ = n.Client().Schedules().Delete(context.WithoutCancel(t.Context()), schedule.Name) })
	}
	after, names := "", []string(nil)
	for {
		got := do(t, n.request(t, "GET", "/v1/schedules?limit=1"+after, malloryToken, "")).ok(t)
		require.NotContains(t, jsonOf(t, got), "hidden")
		schedules, _ := got["schedules"].([]any)
		for _, s := range schedules {
			names = append(names, s.(map[string]any)["name"].(string))
		}
		next, _ := got["next"].(string)
		if next == "" {
			break
		}
		require.Len(t, schedules, 1, "a page with a cursor is full")
		after = "&after=" + next
	}
	require.Equal(t, []string{name + "-seen1", name + "-seen2"}, names)
	page, _ := talk(t, n, malloryToken).ask(&messages.ListRecurringRequest{Limit: 1}).(*messages.ListRecurringResponse)
	require.Len(t, page.GetSchedules(), 1)
	require.Equal(t, name+"-seen1", page.GetNext())
}
