package queue

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/wakebell/wakebell/internal/queuekeys"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// queueKeys are the keys of a queue. The keys from pending to backrefs are shared
// with redis-message-queue.
type queueKeys struct {
	pending, processing, completed, failed, dlq string
	deduplication                               string // prefix of the keys

	deadlines, tokens, counter, counts string
	refs, ids, backrefs                string

	places, records      string // of dead letters
	gone, hint, exchange string
	flow                 string // state of the flow control
	throughput, history  string // counts by minute and day; attempts
	published, owners    string // prefixes of keys
	freed                string // ids of deleted messages, whose deduplication keys are free
}

// keysOf returns the keys of a queue.
func keysOf(k timers.Keyspace, n wakebelltype.QueueKeys) queueKeys {
	n = queuekeys.WithDefaults(n)
	base := k.Tagged(n.Name) + n.Separator
	processing, ours := base+"processing", base+"wakebell:"
	q := queueKeys{
		pending: base + "pending", processing: processing, completed: base + "completed", failed: base + "failed",
		dlq: base + "dlq", deduplication: base + "deduplication" + n.Separator,
		deadlines: processing + ":lease_deadlines", tokens: processing + ":lease_tokens",
		counter: processing + ":lease_token_counter", counts: processing + ":delivery_counts",
		refs: processing + ":claim_result_refs", ids: processing + ":claim_result_ids",
		backrefs: processing + ":claim_result_backrefs",
		places:   ours + "places", records: ours + "records", gone: ours + "gone", hint: k.Channel(ours + "hint"), exchange: ours + "exchange",
		flow:       ours + "flow",
		throughput: ours + "counts", history: ours + "history",
		published: ours + "published:", owners: ours + "key:", freed: ours + "freed",
	}
	if n.DeadLetters != "" {
		q.dlq = n.DeadLetters
	}
	return q
}

// stream returns the exchange key of one stream of an incarnation.
func (q queueKeys) stream(incarnation string, stream int) string {
	return q.exchange + ":" + incarnation + ":" + strconv.Itoa(stream)
}

// Queue is a queue on one Redis.
type Queue struct {
	timers *timers.Timers
	name   wakebelltype.QueueKeys
	keys   queueKeys
	member string // of the registry
}

// New returns the queue with that name, on the Redis of s and with its HashTag
// setting. The error wraps [wakebelltype.ErrInvalid].
func New(s *timers.Timers, name wakebelltype.QueueKeys) (*Queue, error) {
	if err := queuekeys.Check(name); err != nil {
		return nil, err
	}
	return &Queue{timers: s, name: name, keys: keysOf(s.Keys(), name), member: member(name)}, nil
}

// Name returns the queue's name.
func (q *Queue) Name() string { return q.name.Name }

// Check verifies at startup that Redis can store these queues: in a Cluster all
// keys of a queue must be in one slot. Errors wrap [exchange.ErrUnavailable] or
// [wakebelltype.ErrUnsupported].
func Check(ctx context.Context, s *timers.Timers, names []wakebelltype.QueueKeys) error {
	for _, name := range names {
		if err := queuekeys.Check(name); err != nil {
			return err
		}
	}
	if len(names) == 0 || !s.Clustered(ctx) {
		return nil
	}
	for _, name := range names {
		if err := checkSlots(s.Keys(), name); err != nil {
			return err
		}
	}
	return nil
}

func checkSlots(keys timers.Keyspace, name wakebelltype.QueueKeys) error {
	k := keysOf(keys, name)
	for _, key := range []string{k.processing, k.dlq, k.deduplication + "x", k.stream("x", 0), k.hint} {
		a, b := layout.SlotOf(k.pending), layout.SlotOf(key)
		if a == b {
			continue
		}
		do := "set HashTag, or put a part of the name in braces"
		switch {
		case key == k.dlq && name.DeadLetters != "":
			do = "give the key of dead letters the hash tag of the queue"
		case keys.Tagged(name.Name) != name.Name:
			do = "rename the queue, its braces break the hash tag"
		}
		return fmt.Errorf("check: %w: queue %q: %q is in slot %d of the Cluster and %q in %d; %s",
			wakebelltype.ErrUnsupported, name.Name, k.pending, a, key, b, do)
	}
	return nil
}

// Listen is [timers.Timers.Listen] for topics and queues, over one connection. The Source
// of a queue's hints is its name.
func Listen(ctx context.Context, s *timers.Timers, topics []string, queues []*Queue, deliver func(exchange.Hint)) error {
	channels := make(map[string]string, len(topics)+len(queues))
	for _, topic := range topics {
		if err := layout.CheckTopic(topic); err != nil {
			return err
		}
		channels[s.Keys().Of(topic).Hint] = topic
	}
	for _, q := range queues {
		channels[q.keys.hint] = q.Name()
	}
	return s.ListenChannels(ctx, channels, deliver)
}

// published counts the messages of this process, starting at a random number.
var published = func() *atomic.Uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	n := new(atomic.Uint64)
	n.Store(binary.BigEndian.Uint64(b[:]) >> 29) // half of 36 bits
	return n
}()

// newTail returns the 20 digits at the end of an id: the version and variant of a
// UUID of version 7, a counter of 36 bits, so that messages of one millisecond are
// in order, and 38 random bits.
func newTail() string {
	var b [10]byte
	_, _ = rand.Read(b[5:])
	n := published.Add(1) & (1<<36 - 1)
	b[0] = 0x70 | byte(n>>32)
	b[1] = byte(n >> 24)
	b[2] = 0x80 | byte(n>>18&0x3f)
	b[3] = byte(n >> 10)
	b[4] = byte(n >> 2)
	b[5] = byte(n<<6) | b[5]&0x3f
	return hex.EncodeToString(b[:])
}
