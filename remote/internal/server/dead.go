package server

import (
	"context"
	"iter"
	"math"

	"google.golang.org/grpc"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/wire"
	"github.com/wakebell/wakebell/wakebelltype"
)

func (o *operations) ListDeadLetters(m *messages.ListDeadLettersRequest, stream grpc.ServerStreamingServer[messages.ListDeadLettersResponse]) error {
	return listing(o, m, stream, o.listDeadLetters)
}

func (o *operations) listDeadLetters(ctx context.Context, m *messages.ListDeadLettersRequest) iter.Seq2[*messages.ListDeadLettersResponse, error] {
	if m.GetLast() == 0 {
		return wire.Each(o.client().DeadLetters(ctx, m.GetTopic(), wire.DeadFilterOf(m.GetFilter()), wire.PageOf(m)), listedDeadLetter)
	}
	return func(yield func(*messages.ListDeadLettersResponse, error) bool) {
		deadLetters, err := o.client().LastDead(ctx, m.GetTopic(), int(min(m.GetLast(), math.MaxInt32)))
		if err != nil {
			yield(nil, err)
			return
		}
		for _, d := range deadLetters {
			if !yield(listedDeadLetter(d), nil) {
				return
			}
		}
	}
}

func listedDeadLetter(d wakebell.DeadLetter) *messages.ListDeadLettersResponse {
	return &messages.ListDeadLettersResponse{DeadLetter: wire.DeadMessage(d)}
}

func (o *operations) GetDeadLetter(ctx context.Context, m *messages.GetDeadLetterRequest) (*messages.GetDeadLetterResponse, error) {
	d, err := o.client().DeadLetter(ctx, m.GetTopic(), m.GetEntry())
	return &messages.GetDeadLetterResponse{DeadLetter: wire.DeadMessage(d)}, err
}

func (o *operations) RedriveDeadLetters(m *messages.RedriveDeadLettersRequest, stream grpc.ServerStreamingServer[messages.RedriveDeadLettersResponse]) error {
	return listing(o, m, stream, o.redriveDeadLetters)
}

func (o *operations) redriveDeadLetters(ctx context.Context, m *messages.RedriveDeadLettersRequest) iter.Seq2[*messages.RedriveDeadLettersResponse, error] {
	return func(yield func(*messages.RedriveDeadLettersResponse, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		options := wakebelltype.RedriveOptions{
			Filter: wire.DeadFilterOf(m.GetFilter()), In: m.GetIn().AsDuration(), Overwrite: m.GetOverwrite(), Rate: int(min(m.GetRate(), math.MaxInt32)),
		}
		left := false
		options.Each = func(l wakebelltype.RedrivenLetter) {
			if !left && !yield(&messages.RedriveDeadLettersResponse{
				Entry: text.Valid(l.Entry), Id: text.Valid(l.ID), Outcome: messages.RedriveOutcome(l.Outcome),
			}, nil) {
				left = true
				cancel()
			}
		}
		if _, err := o.client().Redrive(ctx, m.GetTopic(), options); err != nil && !left {
			yield(nil, err)
		}
	}
}

func (o *operations) DeleteDeadLetters(ctx context.Context, m *messages.DeleteDeadLettersRequest) (*messages.DeleteDeadLettersResponse, error) {
	n, err := o.client().DeleteDead(ctx, m.GetTopic(), wire.DeadFilterOf(m.GetFilter()))
	return &messages.DeleteDeadLettersResponse{Count: n}, err
}
