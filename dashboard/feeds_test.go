package dashboard

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/dashboard/internal/live"
	"github.com/wakebell/wakebell/wakebelltype"
)

// The lateness of a topic is that of its last deliveries, and of no other events.
func TestLatenessIsOfLastDeliveries(t *testing.T) {
	t.Parallel()
	one := &feed{nodes: map[string]*answer{}}
	f := &feeds{all: map[string]*feed{"t": one}}
	require.Zero(t, f.lateness("t"))
	require.Zero(t, f.lateness("other"))
	one.add(wakebelltype.Event{Kind: wakebelltype.EventDelivered, Lateness: time.Hour})
	one.add(wakebelltype.Event{Kind: wakebelltype.EventRetried, Lateness: time.Hour})
	for i := range maxLate {
		one.add(wakebelltype.Event{Kind: wakebelltype.EventDelivered, Attempt: 1, Lateness: time.Duration(maxLate-i) * time.Millisecond})
	}
	require.Equal(t, lateness{maxLate, 250 * time.Millisecond, 495 * time.Millisecond, 500 * time.Millisecond}, f.lateness("t"))
	one.add(wakebelltype.Event{Kind: wakebelltype.EventDelivered, Attempt: 2, Lateness: time.Hour})
	require.Equal(t, 500*time.Millisecond, f.lateness("t").Worst, "a retry comes after its backoff, and is not late")
	one.add(wakebelltype.Event{Kind: wakebelltype.EventDelivered, Attempt: 1, Lateness: time.Hour, Text: "snoozed before"})
	require.Equal(t, 500*time.Millisecond, f.lateness("t").Worst, "it was not late when it began")
}

// A page shows the last state of each node, and for ten minutes that a node stopped answering.
func TestNodesAreShownWhileTheyAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		one, other := &feed{nodes: map[string]*answer{}}, &feed{nodes: map[string]*answer{}}
		f := &feeds{all: map[string]*feed{"a": one, "b": other}}
		state := wakebelltype.NodeState{Version: "v1", Started: time.Now(), Role: "primary", Running: 2, Restarts: 1, Outages: 3}
		hear := func(to *feed, node string, s *wakebelltype.NodeState) bool {
			return to.add(wakebelltype.Event{Kind: wakebelltype.EventState, Node: node, State: s})
		}
		require.True(t, hear(one, "new", &state))
		require.False(t, hear(one, "new", &state), "nothing has changed")
		require.True(t, one.add(wakebelltype.Event{Kind: wakebelltype.EventNode, Node: "old"}))
		state.Role = "fallback"
		require.True(t, hear(other, "new", &state))
		require.Equal(t, []heard{
			{Name: "new", Topics: []heardTopic{{Name: "a", State: one.nodes["new"].state}, {Name: "b", State: state}}, Known: true, Version: "v1", Started: time.Now(), Running: 4, Restarts: 2, Outages: 3},
			{Name: "old", Topics: []heardTopic{{Name: "a"}}},
		}, f.nodes([]string{"a", "b", "c"}))
		before := f.version("b")
		<-time.After(silentAfter + time.Second)
		require.Greater(t, f.version("b"), before, "the page changes")
		silent := f.nodes([]string{"b"})[0]
		require.Equal(t, silentAfter+time.Second, time.Since(silent.Silent), "it is shown as silent")
		require.Zero(t, silent.Running)
		other.err = context.DeadlineExceeded
		require.Empty(t, f.nodes([]string{"b"}), "nothing is heard of any node")
		other.err = nil
		<-time.After(forgottenAfter)
		require.Empty(t, f.nodes([]string{"b"}))
		require.Equal(t, "old", f.nodes([]string{"a"})[0].Name, "a node of an earlier version answers once")
		require.True(t, hear(other, "new", &state), "it is back")
		require.Len(t, f.nodes([]string{"b"}), 1)
		require.Zero(t, f.nodes([]string{"b"})[0].Silent)
		require.True(t, other.add(wakebelltype.Event{Kind: wakebelltype.EventLeft, Node: "new"}))
		require.Empty(t, f.nodes([]string{"b"}), "it has ended in good order")
		require.Equal(t, "max-concurrent 3, lease-ttl 30s, group mail, weight 9, expire-after 1m30s", heardTopic{State: wakebelltype.NodeState{
			Options: wakebelltype.Settings{MaxConcurrent: 3, LeaseTTL: 30 * time.Second, RatePer: time.Second}, Group: "mail", Weight: 9, ExpireAfter: 90 * time.Second,
		}}.Limits())
	})
}

// That a page is closed and opened again is no error of the events, and makes no node silent.
func TestFeedThatRestedReportsNoSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var left sync.Map // nodes that say nothing any more
		f := &feeds{tail: func(ctx context.Context, _ string) iter.Seq2[wakebelltype.Event, error] {
			return func(yield func(wakebelltype.Event, error) bool) {
				for ctx.Err() == nil {
					for _, node := range []string{"dead", "ends", "lives"} {
						if _, gone := left.Load(node); !gone {
							yield(wakebelltype.Event{Kind: wakebelltype.EventState, Node: node, State: &wakebelltype.NodeState{}}, nil)
						}
					}
					select {
					case <-ctx.Done():
					case <-time.After(time.Second):
					}
				}
				yield(wakebelltype.Event{}, ctx.Err())
			}
		}}
		silent := func() map[string]bool {
			all := map[string]bool{}
			for _, n := range f.nodes([]string{"t"}) {
				all[n.Name] = !n.Silent.IsZero()
			}
			return all
		}
		leave, _ := f.follow(t.Context(), "v", "t")
		<-time.After(1500 * time.Millisecond)
		left.Store("dead", true)
		<-time.After(silentAfter + time.Second)
		require.Equal(t, map[string]bool{"dead": true, "ends": false, "lives": false}, silent())
		leave()
		synctest.Wait()
		_, err := f.events("t")
		require.NoError(t, err)
		left.Store("ends", true)
		<-time.After(silentAfter + time.Second)
		require.Equal(t, map[string]bool{"dead": true}, silent(), "nothing is known of the others")
		leave, _ = f.follow(t.Context(), "v", "t")
		<-time.After(silentAfter + time.Second)
		require.Equal(t, map[string]bool{"dead": true, "lives": false}, silent())
		_, err = f.events("t")
		require.NoError(t, err)
		leave()
	})
}

func TestDurationsOfTurnsHaveLabels(t *testing.T) {
	t.Parallel()
	rows, all := heldRows([]wakebelltype.GateHolds{{UpTo: 10 * time.Millisecond, Turns: 3}, {UpTo: time.Second}, {UpTo: time.Minute, Turns: 1}, {Turns: 2}})
	require.EqualValues(t, 6, all)
	require.Equal(t, []heldRow{{"up to 10 ms", 3}, {"10 ms to 1 s", 0}, {"1 s to 1 min", 1}, {"over 1 min", 2}}, rows)
}

// One viewer takes neither all streams nor all connections for events, and topics that do
// not exist take none.
func TestStreamsAndFeedsOfViewerAreBounded(t *testing.T) {
	t.Parallel()
	f := feeds{tail: func(context.Context, string) iter.Seq2[wakebelltype.Event, error] {
		return func(func(wakebelltype.Event, error) bool) {}
	}}
	t.Cleanup(f.close)
	count := func(viewer string, n int) (ok int, leave []func()) {
		for i := range n {
			if l, followed := f.follow(t.Context(), viewer, fmt.Sprint(viewer, i)); followed {
				ok, leave = ok+1, append(leave, l)
			}
		}
		return ok, leave
	}
	greedy, leave := count("greedy", 2*maxRead)
	require.Equal(t, viewerMax, greedy)
	again, _ := count("greedy", viewerMax)
	require.Equal(t, viewerMax, again, "topics that are followed already")
	total := 0
	for i := range 10 {
		n, _ := count(fmt.Sprint("other", i), viewerMax)
		total += n
	}
	require.Equal(t, maxRead-viewerMax, total)
	_, shared := f.follow(t.Context(), "late", "greedy0")
	require.True(t, shared, "it costs no connection")
	_, more := f.follow(t.Context(), "late", "more")
	require.False(t, more, "the bound of all is used up")
	for _, l := range leave {
		l()
	}
	h := live.New(time.Hour, 10, 3)
	t.Cleanup(h.Close)
	probe := func(context.Context) (string, error) { return "", nil }
	watch := func(viewer string) (ok int) {
		for i := range 20 {
			if _, _, watching := h.Watch(t.Context(), viewer, fmt.Sprint(i), probe); watching {
				ok++
			}
		}
		return ok
	}
	require.Equal(t, []int{3, 3, 3, 1}, []int{watch("a"), watch("b"), watch("c"), watch("d")})
}
