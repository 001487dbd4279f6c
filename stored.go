package wakebell

import (
	"context"
	"fmt"
)

// Stored is a timer of a topic in Redis.
type Stored[T any] struct {
	Info
	Body T // Content.Body, decoded

	// Content holds the headers and the body as they are stored.
	Content Content
}

// Get returns a timer of the topic with its body decoded. If the body cannot be
// decoded into T, Get returns the timer with a zero Body, and an error that wraps
// ErrUnreadable. Other errors are those of Client.Get, such as ErrNotFound.
func (t Topic[T]) Get(ctx context.Context, c TimerClient, id string) (Stored[T], error) {
	if c == nil {
		return Stored[T]{}, invalid("client", "nil")
	}
	info, content, err := c.Get(ctx, t.name, id)
	if err != nil {
		return Stored[T]{}, err
	}
	stored := Stored[T]{Info: info, Content: content}
	if stored.Body, err = t.codec.Decode(content.Body, content.ContentType); err != nil {
		return stored, fmt.Errorf("get %s on %s: %w: %w", quoted(id), quoted(t.name), ErrUnreadable, err)
	}
	return stored, nil
}
