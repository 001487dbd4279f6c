package faults

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// delivered records the start of a delivery of the timer that is due at an instant.
func (b testLog) delivered(node string, due, attempt, failures, at int) {
	b.RecordLine(node, Line{Event: EventBegin, ID: "client-1/1", Generation: 1, Attempt: attempt, Failures: failures, Activation: b.at(due), Delivered: b.at(at), At: b.at(at)})
}

func (b testLog) ends(node string, delivered, at int, end End) {
	b.RecordLine(node, Line{Event: EventEnd, ID: "client-1/1", Delivered: b.at(delivered), At: b.at(at), End: end})
}

func (b testLog) cancelled(called int, found Found) {
	b.RecordCall("client-1/1", Call{Kind: CallCancel, Client: "client-1", Generation: 1, Called: b.at(called), Returned: b.at(called + 1), Earliest: b.at(called), Found: found})
}

// TestSpecificationExplainsLog has logs that steps of the specification explain, and logs of
// broken promises, which none explain.
func TestSpecificationExplainsLog(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		write func(testLog)
		want  string // in the violation; empty: it is explained
	}{
		"delivered": {func(b testLog) { b.delivered("a", 10, 1, 0, 10); b.ends("a", 10, 20, EndAck) }, ""},
		"lost":      {func(testLog) {}, "nothing lost"},
		"early":     {func(b testLog) { b.delivered("a", 10, 1, 0, 9); b.ends("a", 9, 20, EndAck) }, "a delivery"},
		"of another instant": {
			func(b testLog) { b.delivered("a", 11, 1, 0, 11); b.ends("a", 11, 20, EndAck) }, "a delivery",
		},
		"retried": {func(b testLog) {
			b.delivered("a", 10, 1, 0, 10)
			b.ends("a", 10, 20, EndNack)
			b.delivered("b", 10, 2, 1, 30)
			b.ends("b", 30, 40, EndAck)
		}, ""},
		"repeated after its end": {func(b testLog) {
			b.delivered("a", 10, 1, 0, 10)
			b.ends("a", 10, 20, EndAck)
			b.delivered("b", 10, 2, 0, 1500)
			b.ends("b", 1500, 1510, EndAck)
		}, "a verdict that counted"},
		"repeated after its node was killed":             {func(b testLog) { b.killedEarly(1001) }, ""},
		"repeated before the lease of the first expired": {func(b testLog) { b.killedEarly(905) }, "a delivery"},
		"delivered after it was cancelled": {func(b testLog) {
			b.cancelled(5, FoundPending)
			b.delivered("a", 10, 1, 0, 10)
			b.ends("a", 10, 20, EndAck)
		}, "a delivery"},
		"cancelled while it ran": {func(b testLog) {
			b.delivered("a", 10, 1, 0, 10)
			b.cancelled(15, FoundRunning)
			b.ends("a", 10, 20, EndAck)
		}, ""},
		"found pending while it ran": {func(b testLog) {
			b.delivered("a", 10, 1, 0, 10)
			b.cancelled(15, FoundPending)
			b.ends("a", 10, 20, EndAck)
		}, "a call"},
		"found nothing before it was delivered": {func(b testLog) {
			b.cancelled(5, FoundNothing)
			b.delivered("a", 10, 1, 0, 10)
			b.ends("a", 10, 20, EndAck)
		}, "a "},
		"settled by a stale holder": {func(b testLog) {
			b.fault(Stop, "a", 12, 1100)
			b.delivered("a", 10, 1, 0, 10)
			b.delivered("b", 10, 2, 0, 1012)
			b.settled("a", 10, 1100, ResultAccepted)
			b.settled("b", 1012, 1120, ResultAccepted)
		}, "a verdict that counted"},
		"refused to its holder": {func(b testLog) {
			b.delivered("a", 10, 1, 0, 10)
			b.settled("a", 10, 20, ResultRefused)
		}, "a verdict that did not count"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newTestLog()
			b.scheduled(1, 0, 10, FoundNothing)
			c.write(b)
			requireExplained(t, b.DeliveryLog, c.want)
			var text strings.Builder
			require.NoError(t, b.WriteLog(&text, "s"))
			require.NoError(t, ReadLogs(strings.NewReader(text.String()), func(_ string, again *DeliveryLog) {
				requireExplained(t, again, c.want)
			}))
		})
	}
}

func requireExplained(t *testing.T, l *DeliveryLog, want string) {
	t.Helper()
	e := l.Explain()
	if want == "" {
		require.Equal(t, Explained{Timers: 1}, e)
		return
	}
	require.Len(t, e.Violations, 1, "%+v", e)
	require.Contains(t, e.Violations[0], want)
}

func TestSpecificationSkipsLostWrites(t *testing.T) {
	t.Parallel()
	b := newTestLog()
	b.scheduled(1, 0, 10, FoundNothing)
	b.fault(DataLoss, "", 0, int(time.Minute/time.Millisecond))
	require.Equal(t, Explained{Skipped: 1}, b.Explain())
}
