package wakebell

import (
	"context"
	"errors"

	"github.com/wakebell/wakebell/internal/gateway"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/queue"
)

// publish carries out a publish request. If the queue is full, the answer has the
// messages that were published.
func (r requests) publish(ctx context.Context, m *messages.PublishRequest) (messages.Answer, error) {
	out, err := r.client.queues.Publish(ctx, gateway.PublishDrafts(m)...)
	if err != nil && !errors.Is(err, queue.ErrFull) {
		return nil, err
	}
	answer := &messages.PublishResponse{Request: m.GetRequest()}
	for _, p := range out {
		answer.Messages = append(answer.Messages, &messages.PublishedMessage{Id: text.Valid(p.ID), Fresh: p.Fresh})
	}
	return answer, nil
}
