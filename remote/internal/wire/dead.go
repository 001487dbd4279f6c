package wire

import (
	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/wakebelltype"
)

// DeadFilterMessage converts a filter of dead letters to a message.
func DeadFilterMessage(f wakebelltype.DeadFilter) *messages.DeadLetterFilter {
	return &messages.DeadLetterFilter{
		Entry: f.Entry, Reason: text.Valid(f.Reason), ReasonPrefix: text.Valid(f.ReasonPrefix), OlderThan: Span(f.OlderThan), NewerThan: Span(f.NewerThan),
	}
}

// DeadFilterOf is the inverse of DeadFilterMessage.
func DeadFilterOf(m *messages.DeadLetterFilter) wakebelltype.DeadFilter {
	return wakebelltype.DeadFilter{
		Entry: m.GetEntry(), Reason: m.GetReason(), ReasonPrefix: m.GetReasonPrefix(),
		OlderThan: m.GetOlderThan().AsDuration(), NewerThan: m.GetNewerThan().AsDuration(),
	}
}

// DeadMessage converts a dead letter to a message.
func DeadMessage(d wakebell.DeadLetter) *messages.DeadLetter {
	return &messages.DeadLetter{
		Entry: text.Valid(d.Entry), Id: text.Valid(d.ID), Reason: text.Valid(d.Reason), Attempts: convert.Count(d.Attempts), Failures: convert.Count(d.Failures),
		Activation: convert.Timestamp(d.Activation), Died: convert.Timestamp(d.Died), Content: contentMessage(d.Content), Key: []byte(d.Key),
	}
}

func contentMessage(c wakebell.Content) *messages.Content {
	return convert.ContentMessage(envelope.Envelope{
		CorrelationID: c.CorrelationID, ContentType: c.ContentType, ReplyTo: c.ReplyTo, Headers: c.Headers, Body: c.Body,
	})
}

// DeadOf is the inverse of DeadMessage.
func DeadOf(topic string, m *messages.DeadLetter) wakebell.DeadLetter {
	return wakebell.DeadLetter{
		Entry: m.GetEntry(), ID: m.GetId(), Topic: topic, Reason: m.GetReason(), Attempts: int(m.GetAttempts()), Failures: int(m.GetFailures()),
		Activation: convert.Time(m.GetActivation()), Died: convert.Time(m.GetDied()), Content: ContentOf(m.GetContent()), Cursor: m.GetEntry(),
		Key: string(m.GetKey()),
	}
}
