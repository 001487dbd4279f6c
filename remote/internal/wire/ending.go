package wire

import (
	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/wakebelltype"
)

// EndingMessage converts how a timer has ended.
func EndingMessage(e wakebell.Ending) *messages.WaitTimerResponse {
	m := &messages.WaitTimerResponse{End: string(e.End), Reason: text.Valid(e.Reason)}
	if p := e.Progress; p != nil {
		m.Progress = &messages.TimerProgress{
			Fraction: p.Fraction, Note: text.Valid(p.Note), At: convert.Timestamp(p.At), Attempt: convert.Count(p.Attempt),
		}
	}
	if r := e.Result; r != nil {
		m.Result = &messages.TimerResult{
			Content: convert.ContentMessage(envelope.Envelope{
				CorrelationID: r.Content.CorrelationID, ContentType: r.Content.ContentType, ReplyTo: r.Content.ReplyTo,
				Headers: r.Content.Headers, Body: r.Content.Body,
			}),
			Attempt: convert.Count(r.Attempt), Activation: convert.Timestamp(r.Activation), At: convert.Timestamp(r.At),
		}
	}
	return m
}

// EndingOf is the inverse of EndingMessage.
func EndingOf(m *messages.WaitTimerResponse) wakebell.Ending {
	e := wakebell.Ending{End: wakebelltype.End(m.GetEnd()), Reason: m.GetReason()}
	if p := m.GetProgress(); p != nil {
		e.Progress = &wakebelltype.Progress{Fraction: p.GetFraction(), Note: p.GetNote(), At: convert.Time(p.GetAt()), Attempt: int(p.GetAttempt())}
	}
	e.Result = ResultOf(m.GetResult())
	return e
}

// ResultOf converts the result of a timer; nil: there is none.
func ResultOf(r *messages.TimerResult) *wakebell.Result {
	if r == nil {
		return nil
	}
	return &wakebell.Result{
		Content: ContentOf(r.GetContent()), Attempt: int(r.GetAttempt()), Activation: convert.Time(r.GetActivation()), At: convert.Time(r.GetAt()),
	}
}
