package transfer

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

var hour = time.Now().Truncate(time.Second).Add(time.Hour).UTC()

// fill gives a topic timers and dead letters of all kinds: 209 timers, of which one is
// leased, one waits for its retry, one was debounced and one has a mark, and a dead letter.
func fill(t *testing.T, f *fixture) {
	t.Helper()
	var all []timers.Entry
	for i := range 200 {
		e := timers.Entry{ID: fmt.Sprintf("t%03d", i), At: hour.Add(time.Duration(i/10) * time.Second)}
		if i%2 == 0 {
			e.Key = fmt.Sprint("customer ", i%6)
		}
		all = append(all, e)
	}
	f.schedule(t, all...)
	f.schedule(t, timers.Entry{ID: "dead", Key: "other"}, timers.Entry{ID: "retried", Key: "retried key"},
		timers.Entry{ID: "behind retried", Key: "retried key"}, timers.Entry{ID: "Zürich <&>", At: hour})
	streams, leases := f.claim(t, f.topic)
	for i := range streams {
		for _, l := range leases[i] {
			verdict := exchange.DeadLetter
			if l.ID == "retried" {
				verdict = exchange.Nack
			}
			settle := storetest.Verdict(verdict, l)
			settle.Delay, settle.Reason = time.Minute, "broken: 1:2"
			streams[i].Settle(t, settle)
		}
	}
	f.schedule(t, timers.Entry{ID: "leased"}, timers.Entry{ID: "parked a", Key: "busy"}, timers.Entry{ID: "parked b", Key: "busy"}, timers.Entry{ID: "parked c", Key: "busy"})
	f.claim(t, f.topic)
	f.schedule(t, timers.Entry{ID: "debounced", In: time.Hour, Policy: wakebelltype.PolicyDebounce, MaxDelay: 2 * time.Hour},
		timers.Entry{ID: "once", At: hour, Once: time.Hour})
}

func TestTopicIsExportedAndImported(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture, n int) {
		if n > 1 {
			_, err := f.Divide(t.Context(), f.topic, n)
			require.NoError(t, err)
		}
		_, err := f.Pause(t.Context(), f.topic, "anna", "the bank is down")
		require.NoError(t, err)
		set := wakebelltype.Settings{MaxConcurrent: 7, LeaseTTL: 90 * time.Second, MaxInFlight: -1}
		_, err = f.Retune(t.Context(), f.topic, set)
		require.NoError(t, err)
		fill(t, f)

		text, counts := f.export(t, f.topic)
		require.EqualValues(t, 209, counts.Timers)
		require.EqualValues(t, 1, counts.Dead)
		require.EqualValues(t, 210, counts.Total)
		ids := idsOf(t, text, "timer")
		require.Len(t, slices.Compact(ids), 209)
		require.Equal(t, []string{"dead"}, idsOf(t, text, "dead"))
		require.Equal(t, []string{"once"}, slices.Compact(idsOf(t, text, "mark")))

		copied := f.topic + "-copy"
		done := f.loaded(t, text, wakebelltype.ImportOptions{Topic: copied})
		require.Equal(t, wakebelltype.Imported{
			Topic: copied, Line: int64(strings.Count(text, "\n")), Stored: 209, Dead: 1, Marks: done.Marks, Total: 210, Done: true,
		}, done)
		require.Positive(t, done.Marks)

		l, err := f.Layout(t.Context(), copied)
		require.NoError(t, err)
		require.Equal(t, n, l.Count())
		c, err := f.Control(t.Context(), copied)
		require.NoError(t, err)
		require.True(t, c.Paused)
		require.Equal(t, "anna: the bank is down", c.PausedBy+": "+c.Reason)
		require.Equal(t, set, c.Settings)

		again, _ := f.export(t, copied)
		require.Equal(t, withoutMarks(body(text)), withoutMarks(body(again)), "the copy has the same lines")

		retried, err := f.Get(t.Context(), copied, "retried")
		require.NoError(t, err)
		require.Equal(t, 1, retried.Claims)
		require.Equal(t, "broken: 1:2", retried.LastError)
		require.Greater(t, time.Until(retried.Due), 30*time.Second)
		scheduled, err := f.Schedule(t.Context(), copied, timers.Entry{ID: "once", Payload: []byte("x"), Once: time.Hour})
		require.NoError(t, err)
		require.Equal(t, wakebelltype.OutcomeReplaced, scheduled[0].Outcome, "it has not been delivered")
		_, err = f.Cancel(t.Context(), copied, "once")
		require.NoError(t, err)
		scheduled, err = f.Schedule(t.Context(), copied, timers.Entry{ID: "once", Payload: []byte("x"), Once: time.Hour})
		require.NoError(t, err)
		require.Equal(t, wakebelltype.OutcomeAlreadyDone, scheduled[0].Outcome)
		f.requireDelivered(t, copied)
	})
}

// TestMarkOfHandledTimerWithKeyIsImported checks that the mark says that its timer had a key.
func TestMarkOfHandledTimerWithKeyIsImported(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture, n int) {
		if n > 1 {
			_, err := f.Divide(t.Context(), f.topic, n)
			require.NoError(t, err)
		}
		once := timers.Entry{ID: "once", Key: "customer", Payload: []byte("x"), Once: time.Hour}
		f.schedule(t, once)
		streams, leases := f.claim(t, f.topic)
		for i := range streams {
			for _, l := range leases[i] {
				streams[i].Settle(t, storetest.Verdict(exchange.Ack, l))
			}
		}
		text, _ := f.export(t, f.topic)
		require.Contains(t, text, `"keyed":true`)
		copied := f.topic + "-copy"
		f.loaded(t, text, wakebelltype.ImportOptions{Topic: copied})
		scheduled, err := f.Schedule(t.Context(), copied, once)
		require.NoError(t, err)
		require.Equal(t, wakebelltype.OutcomeAlreadyDone, scheduled[0].Outcome)
		again, _ := f.export(t, copied)
		require.Contains(t, again, `"keyed":true`)
	})
}

// withoutMarks leaves out the lines of marks, whose expiry is rounded, and the last line,
// because a mark may be found twice.
func withoutMarks(lines []string) []string {
	return slices.DeleteFunc(lines, func(line string) bool {
		return strings.HasPrefix(line, `{"type":"mark"`) || strings.HasPrefix(line, `{"type":"end"`)
	})
}

// requireDelivered requires that the due timers of a copy are delivered, those of a key in
// their order.
func (f *fixture) requireDelivered(t *testing.T, topic string) {
	t.Helper()
	_, err := f.Resume(t.Context(), topic)
	require.NoError(t, err)
	var got []string
	for range 3 {
		streams, leases := f.claim(t, topic)
		for i := range streams {
			for _, l := range leases[i] {
				got = append(got, l.ID)
				streams[i].Settle(t, storetest.Verdict(exchange.Ack, l))
			}
		}
	}
	parked := slices.DeleteFunc(slices.Clone(got), func(id string) bool { return !strings.HasPrefix(id, "parked") })
	require.Equal(t, []string{"parked a", "parked b", "parked c"}, parked)
	slices.Sort(got)
	require.Equal(t, []string{"leased", "parked a", "parked b", "parked c"}, got, "what is behind a retry waits")
}

// TestTimersOfKeyKeepTheirOrder imports timers of a key with the same instant, and then
// schedules others for it.
func TestTimersOfKeyKeepTheirOrder(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t))
	at := time.Now().Add(-time.Minute)
	var want []string
	for i := range 300 {
		id := fmt.Sprintf("%03d", (i*7)%300)
		want = append(want, id)
		f.schedule(t, timers.Entry{ID: id, Key: "key", At: at})
	}
	text, _ := f.export(t, f.topic)
	f.topic += "-copy"
	f.loaded(t, text, wakebelltype.ImportOptions{Topic: f.topic})
	f.schedule(t, timers.Entry{ID: "later", Key: "key", At: at})
	want = append(want, "later")
	for i, id := range want {
		streams, leases := f.claim(t, f.topic)
		require.Len(t, leases[0], 1, "%d", i)
		require.Equal(t, id, leases[0][0].ID)
		streams[0].Settle(t, storetest.Verdict(exchange.Ack, leases[0][0]))
	}
}

// TestExportHasEachTimerOnce changes a topic while it is exported: most timers are
// cancelled, so that Redis's tables shrink, and the instants of others change.
func TestExportHasEachTimerOnce(t *testing.T) {
	t.Parallel()
	for i := range 60 { // a scan of a table that has shrunk repeats an id now and then
		testChanges(t, newFixture(t, redistest.Shared(t)), i)
	}
}

func testChanges(t *testing.T, f *fixture, round int) {
	const all, kept, shrinks = 600, 40, 150
	id := func(i int) string { return fmt.Sprint(round, "-", i) }
	var entries []timers.Entry
	for i := range all {
		entries = append(entries, timers.Entry{ID: id(i), Payload: []byte("x"), At: hour.Add(time.Duration(i) * time.Millisecond)})
	}
	f.schedule(t, entries...)
	d, err := f.Dump(t.Context(), f.topic)
	require.NoError(t, err)
	seen, n := map[string]int{}, 0
	for timer, err := range d.EachTimer(t.Context()) {
		require.NoError(t, err)
		seen[timer.ID]++
		switch n++; {
		case n == shrinks:
			var ids []string
			for i := kept; i < all; i++ {
				ids = append(ids, id(i))
			}
			_, err := f.Cancel(t.Context(), f.topic, ids...)
			require.NoError(t, err)
			// Redis moves a part of the table to the smaller one with each command.
			const touch = "for _ = 1, 2000 do redis.call('ZSCORE', KEYS[1], 'x') end return ''"
			require.NoError(t, f.timers.RDB.Eval(t.Context(), touch, []string{f.timers.Keys().Of(f.topic).Timeline}).Err())
		case n%40 == 0:
			_, err := f.Reschedule(t.Context(), f.topic, id(n%kept), hour.Add(-time.Duration(n)*time.Minute), 0)
			require.NoError(t, err)
			f.schedule(t, timers.Entry{ID: fmt.Sprint("new ", n), At: hour})
		}
	}
	for i := range kept {
		require.Equal(t, 1, seen[id(i)], "%d", i)
	}
	for id, times := range seen {
		require.Equal(t, 1, times, id)
	}
}

// TestExportEndsWithServer loses the position of a scan, as in a failover.
func TestExportEndsWithServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes")
	f := newFixture(t, server.Client(t))
	f.timers.Retry = redisops.Retry{Otherwise: time.Minute}
	var entries []timers.Entry
	for i := range 2000 {
		entries = append(entries, timers.Entry{ID: fmt.Sprint(i), At: hour})
	}
	f.schedule(t, entries...)
	n := 0
	var failed error
	for e, err := range Export(t.Context(), f.Store, f.topic, "name", writer(func() {
		if n++; n == 1 {
			server.Restart(t)
		}
	})) {
		if failed = err; err == nil {
			require.False(t, e.Done)
		}
	}
	require.ErrorIs(t, failed, timers.ErrOtherServer)
}

type writer func()

func (w writer) Write(p []byte) (int, error) { w(); return len(p), nil }

// TestTimersOfOtherProgramsAreExported has timers that no node can handle.
func TestTimersOfOtherProgramsAreExported(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t))
	f.timers.MaxPayload = 100
	k := f.timers.Keys().Of(f.topic)
	for id, payload := range map[string]string{"\xff": "not UTF-8", "large": strings.Repeat("x", 101), "fine": "x"} {
		require.NoError(t, f.timers.RDB.HSet(t.Context(), k.Payloads, id, payload).Err())
		require.NoError(t, f.timers.RDB.Do(t.Context(), "ZADD", k.Timeline, "-inf", id).Err())
	}
	require.NoError(t, f.timers.RDB.Do(t.Context(), "ZADD", k.Timeline, "5", "without a payload").Err())
	require.NoError(t, f.timers.RDB.HSet(t.Context(), k.Payloads, "never", "x").Err())
	require.NoError(t, f.timers.RDB.Do(t.Context(), "ZADD", k.Timeline, "+inf", "never").Err())
	text, counts := f.export(t, f.topic)
	require.EqualValues(t, 4, counts.Timers)
	require.Contains(t, text, `{"type":"timer","id":{"base64":"/w=="},"at":"1970-01-01T00:00:00Z","payload":"bm90IFVURi04","unusable":"id: not valid UTF-8"}`)
	require.Contains(t, text, `{"type":"timer","id":"large","at":"1970-01-01T00:00:00Z","unusable":"payload: 101 bytes, at most 100 are read"}`)
	require.Contains(t, text, `{"type":"timer","id":"never","payload":"eA=="}`)
	done := f.loaded(t, text, wakebelltype.ImportOptions{Topic: f.topic + "-copy"})
	require.EqualValues(t, 2, done.Stored)
	require.EqualValues(t, 2, done.Unusable)
	timer, err := f.Get(t.Context(), f.topic+"-copy", "never")
	require.NoError(t, err)
	require.True(t, timer.NeverDue)
}
