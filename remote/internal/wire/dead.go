package wire

import (
	"strings"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
)

// DeadFilterMessage converts a filter of dead letters to a message.
func DeadFilterMessage(f wakebell.DeadFilter) *messages.DeadLetterFilter {
	return &messages.DeadLetterFilter{
		Entry: f.Entry, Reason: Text(f.Reason), ReasonPrefix: Text(f.ReasonPrefix), OlderThan: Span(f.OlderThan), NewerThan: Span(f.NewerThan),
	}
}

// DeadFilterOf is the inverse of DeadFilterMessage.
func DeadFilterOf(m *messages.DeadLetterFilter) wakebell.DeadFilter {
	return wakebell.DeadFilter{
		Entry: m.GetEntry(), Reason: m.GetReason(), ReasonPrefix: m.GetReasonPrefix(),
		OlderThan: m.GetOlderThan().AsDuration(), NewerThan: m.GetNewerThan().AsDuration(),
	}
}

// DeadMessage converts a dead letter to a message.
func DeadMessage(d wakebell.DeadLetter) *messages.DeadLetter {
	return &messages.DeadLetter{
		Entry: Text(d.Entry), Id: Text(d.ID), Reason: Text(d.Reason), Attempts: Count(d.Attempts), Failures: Count(d.Failures),
		Activation: Timestamp(d.Activation), Died: Timestamp(d.Died), Content: wakebell.ContentMessage(d.Content),
	}
}

// DeadOf is the inverse of DeadMessage.
func DeadOf(topic string, m *messages.DeadLetter) wakebell.DeadLetter {
	return wakebell.DeadLetter{
		Entry: m.GetEntry(), ID: m.GetId(), Topic: topic, Reason: m.GetReason(), Attempts: int(m.GetAttempts()), Failures: int(m.GetFailures()),
		Activation: InstantOf(m.GetActivation()), Died: InstantOf(m.GetDied()), Content: ContentOf(m.GetContent()),
	}
}

// Text is what fits the wire of a text that somebody else wrote.
func Text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
