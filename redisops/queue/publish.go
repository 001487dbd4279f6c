package queue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/wakebell/wakebell/internal/metrics"
	"github.com/wakebell/wakebell/internal/queuemessage"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	// DefaultWindow is the default of PublishOptions.Window.
	DefaultWindow = time.Hour
	// MaxWindow is the maximum of PublishOptions.Window.
	MaxWindow = 100 * 365 * 24 * time.Hour

	// rememberPublish is how long the answer to a publish is stored, so that a
	// retry of the same call returns it instead of publishing again.
	rememberPublish = time.Minute
	// publishFor bounds the retries of one step, so that the last retry still finds
	// the answer of the first try.
	publishFor = 45 * time.Second
)

// PublishOptions determine how messages are published; the zero value takes the
// defaults.
type PublishOptions struct {
	// Window is how long a deduplication key suppresses messages, 1 ms to 100
	// years; default 1 h.
	Window time.Duration
	// Cap is the maximum number of waiting messages; 0 means no cap.
	Cap int
	// DropOldest makes room at the cap by deleting the oldest messages, at most 250
	// more in one step than it publishes. Without it a publish beyond the cap fails
	// with ErrQueueFull.
	DropOldest bool
	// OwnKeys stores which deduplication key a message has, so that the key can be
	// released: a small Redis key for as long as the window. DropOldest implies it.
	OwnKeys bool
}

// Message is one message to publish.
type Message struct {
	Payload []byte
	// Key suppresses further messages with the same key within the window; empty
	// means no deduplication.
	Key string
	// Headers are stored behind the payload.
	Headers []wakebelltype.Header

	tail string // end of the id; set at the first publish and reused by retries
}

// NewMessage returns a new message. Publishing the same Message again is a retry.
func NewMessage(payload []byte, key string) Message {
	return Message{Payload: payload, Key: key, tail: newTail()}
}

// MessageOf returns the message with this Tail; an empty tail makes a new one.
func MessageOf(payload []byte, key, tail string) (Message, error) {
	if tail == "" {
		return NewMessage(payload, key), nil
	}
	if len(tail) != tailDigits || strings.Trim(tail, "0123456789abcdef") != "" {
		return Message{}, fmt.Errorf("%w: tail: want %d hexadecimal digits in lower case", wakebelltype.ErrInvalid, tailDigits)
	}
	return Message{Payload: payload, Key: key, tail: tail}, nil
}

// tailDigits is the number of digits of a tail.
const tailDigits = 20

// Tail identifies the message; see NewMessage.
func (m *Message) Tail() string {
	if m.tail == "" {
		m.tail = newTail()
	}
	return m.tail
}

// Publish publishes messages, up to 500, with DropOldest 250, or 1 MiB in one atomic step. These are bytes as they
// are stored: a control character takes six there, and a payload that is not UTF-8 twice
// its size. It is safe to repeat with the same messages in the same order: those already published
// are reported as Fresh again, for a minute, or within the window if they all have a Key. Errors wrap
// [wakebelltype.ErrInvalid], [ErrQueueFull] or [wakebelltype.ErrMemoryFull], if the failed
// step wrote nothing, or [exchange.ErrUnavailable]. Earlier steps took effect.
func (q *Queue) Publish(ctx context.Context, o PublishOptions, messages ...Message) (out []wakebelltype.QueuePublished, dropped int, err error) {
	if o, err = o.check(); err != nil {
		return nil, 0, err
	}
	for i := range messages {
		messages[i].Tail()
	}
	limit := layout.BatchEntries
	if o.DropOldest {
		limit = layout.DroppingEntries
	}
	if o.Cap > 0 {
		limit = min(limit, o.Cap)
	}
	m := q.timers.Metrics
	for from := 0; from < len(messages); {
		to, bytes := from, 0
		var rests []string
		for to < len(messages) && to-from < limit {
			rest := queuemessage.Rest(messages[to].Payload, messages[to].Headers)
			if bytes += len(rest); to > from && bytes > layout.BatchBytes {
				break
			}
			rests = append(rests, rest)
			to++
		}
		began := m.Begin(ctx)
		part, n, err := q.publish(ctx, o, messages[from:to], rests)
		m.Sent(ctx, metrics.Publish, q.Name(), to-from-duplicates(part), began, err)
		m.Duplicates(ctx, q.Name(), duplicates(part))
		if err != nil {
			return out, dropped, fmt.Errorf("publish to %q: %w", q.Name(), err)
		}
		out, dropped, from = append(out, part...), dropped+n, to
	}
	if len(out) > 0 {
		q.remember(ctx)
	}
	return out, dropped, nil
}

// duplicates counts the messages that were not published because of their keys.
func duplicates(published []wakebelltype.QueuePublished) (n int) {
	for _, p := range published {
		if !p.Fresh {
			n++
		}
	}
	return n
}

func (o PublishOptions) check() (PublishOptions, error) {
	if o.Window == 0 {
		o.Window = DefaultWindow
	}
	switch {
	case o.Window < time.Millisecond || o.Window > MaxWindow:
		return o, fmt.Errorf("%w: window: %v, want 1ms to 100 years", wakebelltype.ErrInvalid, o.Window)
	case o.Cap < 0:
		return o, fmt.Errorf("%w: cap: %d, want at least 0", wakebelltype.ErrInvalid, o.Cap)
	case o.DropOldest && o.Cap == 0:
		return o, fmt.Errorf("%w: cap: want one where the oldest are dropped", wakebelltype.ErrInvalid)
	}
	o.OwnKeys = o.OwnKeys || o.DropOldest
	return o, nil
}

// publish runs the script once. Rests has what is stored of each message behind its id.
func (q *Queue) publish(ctx context.Context, o PublishOptions, messages []Message, rests []string) ([]wakebelltype.QueuePublished, int, error) {
	k := q.keys
	const fixed = 6
	keys := make([]string, fixed, fixed+len(messages))
	keys[0], keys[1], keys[2], keys[3] = k.pending, k.counts, k.hint, k.published+step(messages)
	keys[5] = k.pending // a key that is not used needs no right of its own
	codes := make([]byte, len(messages))
	args := make([]any, 6+2*len(messages))
	for i := range messages {
		m := &messages[i]
		codes[i] = '-'
		if m.Key != "" {
			codes[i], keys[5] = 'k', k.freed
			keys = append(keys, k.deduplication+m.Key)
		}
		args[6+i], args[6+len(messages)+i] = &m.tail, &rests[i]
	}
	// A key within its window is proof enough that the message was published,
	// unless keys can be released.
	remember := rememberPublish
	if len(keys) == fixed+len(messages) && o.Window > rememberPublish && !o.OwnKeys {
		remember = 0
	}
	owners, drop := "", "0"
	if o.OwnKeys {
		owners = k.owners
	}
	if o.DropOldest {
		drop = "1"
	}
	args[0], args[1], args[2], args[3] = o.Cap, drop, o.Window.Milliseconds(), remember.Milliseconds()
	args[4], args[5] = owners, codes
	ctx, cancel := context.WithTimeout(ctx, publishFor)
	defer cancel()
	var text string
	err := q.counted(ctx, keys, 4, func() (err error) {
		text, err = q.timers.RunText(ctx, publishScript, keys, args...)
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	return readPublished(text, len(messages))
}

// step names a step of a publish by all its messages: a message that is published again beside
// other messages is no retry.
func step(messages []Message) string {
	if len(messages) == 1 {
		return messages[0].tail
	}
	digest := sha256.New()
	for i := range messages {
		digest.Write([]byte(messages[i].tail))
	}
	return hex.EncodeToString(digest.Sum(nil)[:tailDigits/2])
}

func readPublished(text string, n int) ([]wakebelltype.QueuePublished, int, error) {
	r := scripts.Reader{Text: text}
	dropped := r.Integer()
	out := make([]wakebelltype.QueuePublished, n)
	for i := range out {
		out[i].Fresh = r.Word() == "f"
		if id := r.Word(); id != "-" {
			out[i].ID = strings.Clone(id)
		}
	}
	if r.Err == nil && r.Text != "" {
		r.Fail("more than announced")
	}
	return out, dropped, r.Err
}
