package wakebell

import (
	"context"
	"iter"
	"time"

	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/internal/paging"
	"github.com/wakebell/wakebell/redisops/timers"
)

// DeadLetter is a timer that was given up.
type DeadLetter struct {
	Entry      string // its own id, in the order of dying
	ID         string // of the timer
	Topic      string // with its prefix
	Reason     string
	Attempts   int
	Failures   int
	Activation time.Time
	Died       time.Time
	Content    Content
}

// DeadFilter chooses dead letters; the zero value takes all.
type DeadFilter = timers.DeadFilter

// DeadLetters yields the dead letters of a topic that the filter takes, oldest
// first, in pages as the loop goes on. An error is yielded last.
func (c *Client) DeadLetters(ctx context.Context, topic string, f DeadFilter) iter.Seq2[DeadLetter, error] {
	return paging.All(func(after string) ([]DeadLetter, string, error) {
		full, err := c.fullName(topic)
		if err != nil {
			return nil, after, err
		}
		letters, next, err := c.store.DeadLetters(ctx, full, f, after, 0)
		dead := make([]DeadLetter, len(letters))
		for i, d := range letters {
			dead[i] = deadLetterOf(full, d)
		}
		return dead, next, err
	})
}

// DeadLetter reads one dead letter by its Entry; ErrNotFound when there is
// none.
func (c *Client) DeadLetter(ctx context.Context, topic, entry string) (DeadLetter, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return DeadLetter{}, err
	}
	d, err := c.store.DeadLetter(ctx, full, entry)
	if err != nil {
		return DeadLetter{}, err
	}
	return deadLetterOf(full, d), nil
}

func deadLetterOf(topic string, d timers.DeadLetter) DeadLetter {
	return DeadLetter{
		Entry: d.Entry, ID: d.ID, Topic: topic, Reason: d.Reason,
		Attempts: d.Claims, Failures: d.Failures, Activation: d.Activation, Died: d.At,
		Content: content(d.Payload, d.ID),
	}
}

// LastDead reads the last n dead letters of a topic (1 – 1,000), the oldest of
// them first.
func (c *Client) LastDead(ctx context.Context, topic string, n int) ([]DeadLetter, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return nil, err
	}
	letters, err := c.store.LastDead(ctx, full, n)
	if err != nil {
		return nil, err
	}
	dead := make([]DeadLetter, len(letters))
	for i, d := range letters {
		dead[i] = deadLetterOf(full, d)
	}
	return dead, nil
}

// onDead is OnDead as the actors call it.
func (s *System) onDead() func(context.Context, poller.DeadTimer) {
	if s.cfg.OnDead == nil {
		return nil
	}
	return func(ctx context.Context, d poller.DeadTimer) {
		body := content(d.Payload, d.ID)
		if s.queueNamed(d.Topic) != nil { // it has no envelope
			body = Content{Body: d.Payload, CorrelationID: d.ID}
		}
		s.cfg.OnDead(ctx, DeadLetter{
			Entry: d.Entry, ID: d.ID, Topic: d.Topic, Reason: d.Reason,
			Attempts: d.Claims, Failures: d.Failures, Activation: d.Activation, Died: d.At,
			Content: body,
		})
	}
}

// RedriveOptions say which dead letters become timers again, and how: the zero
// value redrives all, 100 a second, and leaves live timers alone.
type RedriveOptions = timers.RedriveOptions

// RedrivenLetter names a dead letter and what became of it.
type RedrivenLetter = timers.RedrivenLetter

// RedriveResult counts dead letters by what became of them.
type RedriveResult = timers.RedriveResult

// RedriveOutcome says what became of a dead letter.
type RedriveOutcome = timers.RedriveOutcome

const (
	// Redriven: it is a timer again.
	Redriven = timers.Redriven
	// Overwritten: it is a timer again, and replaced one of its id.
	Overwritten = timers.Overwritten
	// SkippedLive: it stays, for there is a timer of its id.
	SkippedLive = timers.SkippedLive
	// SkippedBroken: it stays, for it has no id or no payload.
	SkippedBroken = timers.SkippedBroken
)

// Redrive makes timers of dead letters again, the oldest first, and deletes
// those letters, each in one step. The attempts of the timers start anew. What
// dies meanwhile is left for the next call.
//
// It returns when all are done, or with an error and what was done until then;
// calling again goes on. A redrive of one Entry that is not there is
// ErrNotFound.
func (c *Client) Redrive(ctx context.Context, topic string, o RedriveOptions) (RedriveResult, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return RedriveResult{}, err
	}
	return c.store.Redrive(ctx, full, o)
}

// DeleteDead deletes the dead letters that the filter takes, and returns how
// many; the zero filter takes all there are. After an error it may have deleted
// some, which it counts. Of one Entry that is not there it is ErrNotFound.
func (c *Client) DeleteDead(ctx context.Context, topic string, f DeadFilter) (int64, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return 0, err
	}
	return c.store.DeleteDead(ctx, full, f)
}
