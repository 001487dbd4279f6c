package wakebell

import (
	"context"
	"errors"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell/messages"
)

const (
	// What goes in one PublishMessage, at the most.
	maxPublish      = 500
	maxPublishBytes = 1 << 20

	maxPendingCap = 1_000_000_000
)

// PublishMessage is as many of the first drafts as travel together to the
// gateway, n of them. Errors are those of the drafts; their size is checked
// there.
func PublishMessage(drafts ...Publication) (m *messages.Publish, n int, err error) {
	if len(drafts) == 0 {
		return nil, 0, invalid("drafts", "none")
	}
	first := drafts[0].Queue
	m = &messages.Publish{
		Name:       first.Keys.Name,
		Queue:      &messages.Queue{Separator: first.Keys.Separator, DeadLetters: first.Keys.DeadLetters},
		Cap:        count(first.PendingCap),
		DropOldest: first.WhenFull == FullDropsOldest,
		FreesKeys:  first.FreeKeyOnFailure,
	}
	if first.DeduplicationWindow != 0 {
		m.Window = durationpb.New(first.DeduplicationWindow)
	}
	for size := 0; n < len(drafts) && n < maxPublish && drafts[n].Queue == first; n++ {
		d := drafts[n]
		if d.Err != nil {
			return nil, n, d.Err
		}
		if size += len(d.Payload) + len(d.Key); n > 0 && size > maxPublishBytes {
			break
		}
		m.Messages = append(m.Messages, &messages.QueueMessage{Body: d.Payload, Key: d.Key, Tail: d.Tail})
	}
	return m, n, nil
}

// PublishDrafts are the drafts of a message to the gateway. None of them waits
// while the queue is full: the client that asked does.
func PublishDrafts(m *messages.Publish) []Publication {
	set := QueueSettings{
		Keys: QueueName{
			Name: m.GetName(), Separator: m.GetQueue().GetSeparator(), DeadLetters: m.GetQueue().GetDeadLetters(),
		},
		DeduplicationWindow: m.GetWindow().AsDuration(),
		PendingCap:          int(min(m.GetCap(), maxPendingCap)),
		FreeKeyOnFailure:    m.GetFreesKeys(),
	}
	if m.GetDropOldest() {
		set.WhenFull = FullDropsOldest
	}
	drafts := make([]Publication, len(m.GetMessages()))
	for i, one := range m.GetMessages() {
		drafts[i] = Publication{Queue: set, Payload: one.GetBody(), Key: one.GetKey(), Tail: one.GetTail()}
	}
	return drafts
}

// publish is what a Client does.
func (r requests) publish(ctx context.Context, m *messages.Publish) (messages.Answer, error) {
	out, err := r.client.queues.Publish(ctx, PublishDrafts(m)...)
	if err != nil && !errors.Is(err, ErrQueueFull) {
		return nil, err
	}
	answer := &messages.MessagesPublished{Request: m.GetRequest()}
	for _, p := range out {
		answer.Messages = append(answer.Messages, &messages.MessagePublished{Id: utf8(p.ID), Fresh: p.Fresh})
	}
	return answer, nil
}
