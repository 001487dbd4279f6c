package convert

import (
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/wakebelltype"
)

// ContentMessage converts the content of a timer to a message. Invalid UTF-8 is
// replaced, and
// of headers with the same key the last remains.
func ContentMessage(c envelope.Envelope) *messages.Content {
	m := &messages.Content{
		Body: c.Body, ContentType: text.Valid(c.ContentType), CorrelationId: text.Valid(c.CorrelationID), ReplyTo: text.Valid(c.ReplyTo),
		Headers: HeaderMap(c.Headers),
	}
	return m
}

// StatsMessage converts a Stats to a message.
func StatsMessage(st wakebelltype.Stats) *messages.TopicStats {
	return &messages.TopicStats{
		Total: st.Total, Pending: st.Pending, Due: st.Due, Leased: st.Leased, Retrying: st.Retrying, Parked: st.Parked, Dead: st.Dead,
		Estimated: st.Estimated, OldestDue: Timestamp(st.OldestDue), Lag: durationpb.New(st.Lag), PausedAt: Timestamp(st.PausedAt),
		PausedUntil: Timestamp(st.PausedUntil),
	}
}
