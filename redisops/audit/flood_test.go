package audit

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/wakebelltype"
)

// details returns the details of the entries of the callers that want selects, the oldest
// first.
func (l *Log) details(t *testing.T, want func(caller string) bool) (details []string) {
	t.Helper()
	for _, e := range l.all(t, wakebelltype.AuditFilter{}) {
		if want(e.By) {
			details = append(details, e.Detail)
		}
	}
	return details
}

// numbered returns "from" to "to"-1 as texts.
func numbered(from, to int) (all []string) {
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprint(i))
	}
	return all
}

// A caller that alternates real changes fills the stream, and then evicts what it wrote
// itself, also while others write.
func TestFloodEvictsFlood(t *testing.T) {
	t.Parallel()
	embedded, _ := redistest.Embedded(t)
	for _, rdb := range []*redis.Client{redistest.Shared(t), embedded} {
		l := open(t, rdb, wakebelltype.AuditConfig{})
		l.most, l.share = 300, 20
		peer := messages.WithOrigin(messages.WithPrincipal(t.Context(), "loop"), messages.Origin{Host: "192.0.2.7", Credential: "token"})
		changes := 0
		change := func() {
			operator := WithCaller(t.Context(), fmt.Sprint("operator ", changes%10))
			l.Record(operator, wakebelltype.AuditTopicPause, "t", One(fmt.Sprint(changes), nil))
			changes++
		}
		for range 150 {
			change()
		}
		for i := range 500 {
			operation := wakebelltype.AuditTopicPause
			if i%2 == 1 {
				operation = wakebelltype.AuditTopicResume
			}
			l.Record(peer, operation, "t", One(fmt.Sprint(i), nil))
			if i%100 == 99 {
				change()
			}
		}
		require.Zero(t, l.Failed())
		require.Equal(t, numbered(0, changes), l.details(t, func(by string) bool { return by != "loop" }))
		flood := l.details(t, func(by string) bool { return by == "loop" })
		require.InDelta(t, l.most-100-changes, len(flood), 2)
		require.Equal(t, numbered(500-len(flood), 500), flood, "the oldest are evicted first")
	}
}

// One caller alone has the stream, but the room for others.
func TestCallerAloneHasStream(t *testing.T) {
	t.Parallel()
	l := open(t, redistest.Shared(t), wakebelltype.AuditConfig{})
	l.most, l.share = 300, 20
	for i := range 500 {
		l.Record(t.Context(), wakebelltype.AuditTopicPause, "t", One(fmt.Sprint(i), nil))
	}
	require.Equal(t, numbered(300, 500), l.details(t, func(string) bool { return true }))
}

// A caller within its share pushes out the oldest, whose ever they are.
func TestFullStreamTakesEntriesOfOthers(t *testing.T) {
	t.Parallel()
	l := open(t, redistest.Shared(t), wakebelltype.AuditConfig{})
	l.most, l.share = 300, 20
	for i := range 400 {
		l.Record(WithCaller(t.Context(), fmt.Sprint("caller ", i%50)), wakebelltype.AuditTopicPause, "t", One(fmt.Sprint(i), nil))
	}
	all := l.all(t, wakebelltype.AuditFilter{})
	require.GreaterOrEqual(t, len(all), 300)
	require.Equal(t, "399", all[len(all)-1].Detail)
	require.NotEqual(t, "0", all[0].Detail)
}

// Callers that take turns do not keep each other's entries from being merged.
func TestAlternatingCallsAreMerged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		l := open(t, rdb, wakebelltype.AuditConfig{})
		for range 30 {
			for _, who := range []string{"ada", "bob"} {
				for _, queue := range []string{"q", "r"} {
					l.Record(WithCaller(t.Context(), who), wakebelltype.AuditQueueRedrive, queue, One("", nil))
				}
			}
			<-time.After(time.Second)
		}
		all := l.all(t, wakebelltype.AuditFilter{})
		require.Len(t, all, 4)
		for _, e := range all {
			require.EqualValues(t, 30, e.Count)
		}
	})
}

// Calls that change nothing are one entry: those that repeat the last operation on a
// name, and those with a count of 0. Two in a row that change something are two.
func TestCallsThatChangeNothingAreMerged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		l := open(t, rdb, wakebelltype.AuditConfig{})
		record := func(operation wakebelltype.AuditOperation, name string, count int64) {
			l.Record(t.Context(), operation, name, Result{Count: count})
		}
		for range 5 {
			record(wakebelltype.AuditTopicPause, "t", 1)
			record(wakebelltype.AuditTopicResume, "other", 1)
			record(wakebelltype.AuditTopicCancelAll, "none", 0)
			record(wakebelltype.AuditQueuePurge, "none", 0)
		}
		record(wakebelltype.AuditTopicResume, "t", 1)
		record(wakebelltype.AuditTopicPause, "t", 1)
		record(wakebelltype.AuditTopicCancelAll, "t", 2)
		record(wakebelltype.AuditTopicCancelAll, "t", 3)
		<-time.After(time.Minute)
		record(wakebelltype.AuditTopicResume, "other", 1)

		var got []string
		for _, e := range l.all(t, wakebelltype.AuditFilter{}) {
			got = append(got, fmt.Sprint(e.Operation, " ", e.Name, " ", e.Count))
		}
		require.Equal(t, []string{
			"topic.pause t 5", "topic.resume other 5", "topic.cancel_all none 0", "queue.purge none 0",
			"topic.resume t 1", "topic.pause t 1", "topic.cancel_all t 2", "topic.cancel_all t 3", "topic.resume other 1",
		}, got)
	})
}
