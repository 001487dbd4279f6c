package remote

import (
	"strings"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
)

func deadFilterMessage(f wakebell.DeadFilter) *messages.DeadLetterFilter {
	return &messages.DeadLetterFilter{
		Entry: f.Entry, Reason: text(f.Reason), ReasonPrefix: text(f.ReasonPrefix), OlderThan: span(f.OlderThan), NewerThan: span(f.NewerThan),
	}
}

func deadFilterOf(m *messages.DeadLetterFilter) wakebell.DeadFilter {
	return wakebell.DeadFilter{
		Entry: m.GetEntry(), Reason: m.GetReason(), ReasonPrefix: m.GetReasonPrefix(),
		OlderThan: m.GetOlderThan().AsDuration(), NewerThan: m.GetNewerThan().AsDuration(),
	}
}

func deadMessage(d wakebell.DeadLetter) *messages.DeadLetter {
	return &messages.DeadLetter{
		Entry: text(d.Entry), Id: text(d.ID), Reason: text(d.Reason), Attempts: count(d.Attempts), Failures: count(d.Failures),
		Activation: timestamp(d.Activation), Died: timestamp(d.Died), Content: wakebell.ContentMessage(d.Content),
	}
}

func deadOf(topic string, m *messages.DeadLetter) wakebell.DeadLetter {
	return wakebell.DeadLetter{
		Entry: m.GetEntry(), ID: m.GetId(), Topic: topic, Reason: m.GetReason(), Attempts: int(m.GetAttempts()), Failures: int(m.GetFailures()),
		Activation: instantOf(m.GetActivation()), Died: instantOf(m.GetDied()), Content: contentOf(m.GetContent()),
	}
}

// text is what fits the wire of a text that somebody else wrote.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
