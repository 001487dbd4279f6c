package wakebell

import (
	"context"
	"errors"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/internal/wire"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/redisops/queue"
)

const (
	// What goes in one PublishMessage, at the most.
	maxPublish      = 500
	maxPublishBytes = 1 << 20
)

// PublishMessage is as many of the first drafts as travel together to the
// gateway, n of them. Errors are those of the drafts; their size is checked
// there.
func PublishMessage(drafts ...Publication) (m *messages.PublishRequest, n int, err error) {
	if len(drafts) == 0 {
		return nil, 0, invalid("drafts", "none")
	}
	first := drafts[0]
	m = &messages.PublishRequest{
		Name:       first.queue.Name,
		Queue:      &messages.Queue{Separator: first.queue.Separator, DeadLetters: first.queue.DeadLetters},
		Cap:        wire.Count(first.set.cap),
		DropOldest: first.set.whenFull == FullDropsOldest,
		FreesKeys:  first.set.freesKeys,
	}
	if first.set.window != 0 {
		m.Window = durationpb.New(first.set.window)
	}
	for size := 0; n < len(drafts) && n < maxPublish && drafts[n].alike(first); n++ {
		d := drafts[n]
		if d.err != nil {
			return nil, n, d.err
		}
		if size += len(d.payload) + len(d.key); n > 0 && size > maxPublishBytes {
			break
		}
		m.Messages = append(m.Messages, &messages.QueueMessage{Body: d.payload, Key: d.message.Key, Tail: d.message.Tail()})
	}
	return m, n, nil
}

// Waits reports whether publishing it waits while the queue is full.
func (p Publication) Waits() bool { return p.set.whenFull == FullWaits }

// publish is what a Client does, but that it waits for no room: who asks does.
func (r requests) publish(ctx context.Context, m *messages.PublishRequest) (messages.Answer, error) {
	q, err := r.client.queue(QueueName{
		Name: m.GetName(), Separator: m.GetQueue().GetSeparator(), DeadLetters: m.GetQueue().GetDeadLetters(),
	})
	if err != nil {
		return nil, err
	}
	options := queue.PublishOptions{
		Cap: int(min(m.GetCap(), 1<<30)), DropOldest: m.GetDropOldest(), OwnKeys: m.GetFreesKeys(),
	}
	if m.GetWindow() != nil {
		options.Window = m.GetWindow().AsDuration()
	}
	all := make([]queue.Message, len(m.GetMessages()))
	for i, one := range m.GetMessages() {
		if len(one.GetBody()) > r.client.limit {
			return nil, invalid("body", "%d bytes, the limit is %d", len(one.GetBody()), r.client.limit)
		}
		if all[i], err = queue.MessageOf(one.GetBody(), one.GetKey(), one.GetTail()); err != nil {
			return nil, err
		}
	}
	out, _, err := q.Publish(ctx, options, all...)
	if err != nil && !errors.Is(err, ErrQueueFull) {
		return nil, err
	}
	answer := &messages.PublishResponse{Request: m.GetRequest()}
	for _, p := range out {
		answer.Messages = append(answer.Messages, &messages.PublishedMessage{Id: text.Valid(p.ID), Fresh: p.Fresh})
	}
	return answer, nil
}
