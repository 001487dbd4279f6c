package wire

import (
	"time"

	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/wakebelltype"
)

// HistoryFilterMessage converts a filter of attempts to a message. Last is a field of
// the request.
func HistoryFilterMessage(f wakebelltype.HistoryFilter) *messages.HistoryFilter {
	return &messages.HistoryFilter{
		Id: text.Valid(f.ID), Outcome: text.Valid(string(f.Outcome)), Error: text.Valid(f.Error), Since: convert.Timestamp(f.Since),
	}
}

// HistoryFilterOf is the inverse of HistoryFilterMessage.
func HistoryFilterOf(m *messages.HistoryFilter) wakebelltype.HistoryFilter {
	return wakebelltype.HistoryFilter{
		ID: m.GetId(), Outcome: wakebelltype.EventKind(m.GetOutcome()), Error: m.GetError(), Since: convert.Time(m.GetSince()),
	}
}

// AttemptMessage converts a recorded attempt to a message.
func AttemptMessage(a wakebelltype.Attempt) *messages.Attempt {
	return &messages.Attempt{
		Id: text.Valid(a.ID), Attempt: convert.Count(a.Attempt), Node: text.Valid(a.Node), Started: convert.Timestamp(a.Started), Took: Span(a.Took),
		Outcome: text.Valid(string(a.Outcome)), Error: text.Valid(a.Error), Cursor: a.Cursor,
	}
}

// AttemptOf is the inverse of AttemptMessage.
func AttemptOf(m *messages.Attempt) wakebelltype.Attempt {
	return wakebelltype.Attempt{
		ID: m.GetId(), Attempt: int(m.GetAttempt()), Node: m.GetNode(), Started: convert.Time(m.GetStarted()), Took: m.GetTook().AsDuration(),
		Outcome: wakebelltype.EventKind(m.GetOutcome()), Error: m.GetError(), Cursor: m.GetCursor(),
	}
}

// ThroughputMessage converts the counts of a topic to a message.
func ThroughputMessage(t wakebelltype.Throughput) *messages.GetThroughputResponse {
	m := &messages.GetThroughputResponse{Step: Span(t.Step), Points: make([]*messages.ThroughputCounts, len(t.Points))}
	for i, p := range t.Points {
		if i == 0 {
			m.From = convert.Timestamp(p.At)
		}
		m.Points[i] = CountsMessage(p)
	}
	return m
}

// CountsMessage converts counts without their instant.
func CountsMessage(c wakebelltype.ThroughputCounts) *messages.ThroughputCounts {
	return &messages.ThroughputCounts{
		Scheduled: c.Scheduled, Handled: c.Handled, Failed: c.Failed, Dead: c.Dead,
		Started: c.Started, Lateness: Span(c.Lateness), MaxLateness: Span(c.MaxLateness),
		Latenesses: latenesses(c.Latenesses),
	}
}

// CountsOf is the inverse of CountsMessage for counts that begin at an instant.
func CountsOf(m *messages.ThroughputCounts, at time.Time) wakebelltype.ThroughputCounts {
	c := wakebelltype.ThroughputCounts{
		At: at, Scheduled: m.GetScheduled(), Handled: m.GetHandled(), Failed: m.GetFailed(), Dead: m.GetDead(),
		Started: m.GetStarted(), Lateness: m.GetLateness().AsDuration(), MaxLateness: m.GetMaxLateness().AsDuration(),
	}
	copy(c.Latenesses[:], m.GetLatenesses())
	return c
}

// latenesses returns the counts without the zeros at the end.
func latenesses(all wakebelltype.Latenesses) []int64 {
	n := len(all)
	for n > 0 && all[n-1] == 0 {
		n--
	}
	return all[:n]
}

// ThroughputOf is the inverse of ThroughputMessage.
func ThroughputOf(m *messages.GetThroughputResponse) wakebelltype.Throughput {
	t := wakebelltype.Throughput{Step: m.GetStep().AsDuration(), Points: make([]wakebelltype.ThroughputCounts, len(m.GetPoints()))}
	for i, p := range m.GetPoints() {
		t.Points[i] = CountsOf(p, convert.Time(m.GetFrom()).Add(time.Duration(i)*t.Step))
	}
	return t
}
