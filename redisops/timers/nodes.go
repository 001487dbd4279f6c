package timers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/eventwire"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Announce writes or removes the announcement of a node, and returns those of the topic
// that are left. The other nodes are notified of a
// change by a hint, exchange.HintJoined or exchange.HintLeft. Announcements that have
// expired are removed. Errors are those of Exchange.
func (t *TimerSource) Announce(ctx context.Context, a exchange.Announcement) (exchange.Announced, error) {
	list, err := t.timers.RunList(ctx, 1, announceScript, []string{t.keys().Nodes, t.keys().Hint},
		string(a.Action), a.Node, a.Lease.Milliseconds())
	if err != nil {
		return exchange.Announced{}, fmt.Errorf("announce %q on %q: %w", a.Node, t.topic, err)
	}
	values, err := scripts.Texts(list)
	if err != nil {
		return exchange.Announced{}, err
	}
	expires, err := strconv.Atoi(values[0])
	if err != nil {
		return exchange.Announced{}, fmt.Errorf("%w: %w", scripts.ErrReply, err)
	}
	return exchange.Announced{Nodes: values[1:], Expires: time.Duration(expires) * time.Millisecond}, nil
}

// AskForHelp asks the announced nodes up to a rank to claim as well, by a hint,
// exchange.HintHelp. Errors wrap [wakebelltype.ErrChannelDenied] or
// [exchange.ErrUnavailable].
func (t *TimerSource) AskForHelp(ctx context.Context, rank int) error {
	return t.timers.publish(ctx, t.keys().Hint, fmt.Appendf(nil, "help %d", rank))
}

// maxReport is the length of a report in bytes from which it is not stored or not read.
const maxReport = 4 << 10

// Report stores the state of a node for a topic, for as long as life; 0 removes it. Errors
// are those of Exchange.
func (t *TimerSource) Report(ctx context.Context, node string, state wakebelltype.NodeState, life time.Duration) error {
	report, err := json.Marshal(state)
	for err == nil && len(report) > maxReport && len(state.Longest) > 0 { // ids may be long
		state.Longest = state.Longest[:len(state.Longest)-1]
		report, err = json.Marshal(state)
	}
	if err == nil && len(report) > maxReport {
		err = fmt.Errorf("%d bytes, at most %d", len(report), maxReport)
	}
	if err == nil {
		_, err = t.timers.RunText(ctx, reportScript, []string{t.keys().Reports}, node, life.Milliseconds(), string(report))
	}
	if err != nil {
		return fmt.Errorf("report of %q on %q: %w", node, t.topic, err)
	}
	return nil
}

// reportsOf reads the reports of nodes that are valid at an instant, sorted by node. What
// cannot be read is left out.
func reportsOf(fields map[string]string, now time.Time) (reports []wakebelltype.NodeReport) {
	for _, node := range slices.Sorted(maps.Keys(fields)) {
		until, text, _ := strings.Cut(fields[node], " ")
		at, err := scripts.ReadScore(until)
		if err != nil || len(text) > maxReport || !scripts.Instant(at).After(now) {
			continue
		}
		r := wakebelltype.NodeReport{Node: node}
		if json.Unmarshal([]byte(text), &r.State) == nil {
			reports = append(reports, r)
		}
	}
	return reports
}

// Key returns the key of a timer; empty: it has none, or the user has no right to read it.
func (t *TimerSource) Key(ctx context.Context, id string) (string, error) {
	entry, err := t.timers.RDB.HGet(ctx, t.keys().TimerKeys, id).Result()
	if err != nil && !errors.Is(err, redis.Nil) && !scripts.IsDenied(err) {
		return "", fmt.Errorf("read the key of %q on %q: %w", id, t.topic, scripts.Wrap(ctx, []string{t.keys().TimerKeys}, err))
	}
	return entry[min(placeBytes, len(entry)):], nil
}

// askLimit is how long AskNodes waits for answers. A node answers within 50 ms.
const askLimit = 1500 * time.Millisecond

// askHint has nodes send events for 0.1 s: earlier versions do not send what they have left
// at the end, and an answer takes 50 ms.
const askHint = "tail 100000 0"

// AskNodes asks the nodes of topics for their states, all by one subscription, and returns
// when each has answered, or after 1.5 s. On a Cluster, where the number of nodes is unknown
// then, it always waits. A node sends the events of the topic meanwhile for as long as it
// takes to answer. Errors are those of Tail. If Redis denies channels to the user, it asks the
// nodes of the other topics, and the error is a [*wakebelltype.UnaskedError].
func (s *Timers) AskNodes(ctx context.Context, topics []string) ([]wakebelltype.NodeAnswer, error) {
	answers, err := s.askTogether(ctx, topics)
	if !errors.Is(err, wakebelltype.ErrChannelDenied) {
		return answers, err
	}
	denied, failed := s.deniedChannels(ctx, topics)
	switch {
	case failed != nil:
		return nil, failed
	case len(denied) == 0 || len(denied) == len(topics): // the user may not subscribe or publish at all
		return nil, &wakebelltype.UnaskedError{Topics: topics, Err: err}
	}
	rest := slices.DeleteFunc(slices.Clone(topics), func(topic string) bool { return slices.Contains(denied, topic) })
	if answers, failed = s.askTogether(ctx, rest); failed != nil {
		return nil, failed
	}
	return answers, &wakebelltype.UnaskedError{Topics: denied, Err: err}
}

// deniedChannels returns the topics of which Redis denies a channel to the user. A user may publish
// where it may subscribe, so it publishes: no event at all, and the question, which comes again.
func (s *Timers) deniedChannels(ctx context.Context, topics []string) (denied []string, err error) {
	pipe := s.RDB.Pipeline()
	for _, topic := range topics {
		k := s.keys.Of(topic)
		pipe.Publish(ctx, k.events, "")
		pipe.Publish(ctx, k.Hint, askHint)
	}
	replies, err := pipe.Exec(ctx)
	if err != nil && !redis.IsPermissionError(err) {
		return nil, fmt.Errorf("ask nodes: %w", scripts.Wrap(ctx, nil, err))
	}
	for i, topic := range topics {
		if redis.IsPermissionError(replies[2*i].Err()) || redis.IsPermissionError(replies[2*i+1].Err()) {
			denied = append(denied, topic)
		}
	}
	return denied, nil
}

// askTogether asks the nodes of topics, or of none if Redis denies one channel to the user.
func (s *Timers) askTogether(ctx context.Context, topics []string) ([]wakebelltype.NodeAnswer, error) {
	if len(topics) == 0 {
		return nil, nil
	}
	q := question{of: map[string]string{}, confirmed: map[string]bool{}, answered: map[Answerer]bool{}}
	for _, topic := range topics {
		if err := layout.CheckTopic(topic); err != nil {
			return nil, err
		}
		q.of[s.keys.Of(topic).events] = topic
	}
	inTime, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	err := s.Receive(inTime, slices.Collect(maps.Keys(q.of)), func(channel string) (err error) {
		if q.confirmed[channel] = true; len(q.confirmed) < len(q.of) {
			return nil
		}
		clear(q.confirmed) // a lost connection is confirmed again
		q.asked = true
		if q.expected, err = s.ask(inTime, q.of); err == nil && q.expected == 0 {
			return scripts.ErrEnough
		}
		return err
	}, q.receive)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case !q.asked && inTime.Err() != nil:
		return nil, fmt.Errorf("ask nodes: %w: no subscription within %v", exchange.ErrUnavailable, askLimit)
	case err != nil && inTime.Err() == nil:
		return nil, fmt.Errorf("ask nodes: %w", err)
	default:
		return q.answers, nil
	}
}

// question is a question to the nodes of topics.
type question struct {
	of        map[string]string // channels of events and their topics
	confirmed map[string]bool   // channels
	asked     bool
	expected  int // answers
	answered  map[Answerer]bool
	answers   []wakebelltype.NodeAnswer
}

// Answerer is a node that has answered for a topic. Containers may share their names, but did
// not start at the same instant.
type Answerer struct {
	topic, node string
	started     int64
}

// AnswererOf returns who has answered.
func AnswererOf(a wakebelltype.NodeAnswer) Answerer {
	of := Answerer{topic: a.Topic, node: a.Node}
	if a.State != nil {
		of.started = a.State.Started.UnixNano()
	}
	return of
}

// ask publishes the question, and returns how many answers to expect.
func (s *Timers) ask(ctx context.Context, of map[string]string) (expected int, err error) {
	pipe := s.RDB.Pipeline()
	for _, topic := range of {
		pipe.Publish(ctx, s.keys.Of(topic).Hint, askHint)
	}
	replies, err := pipe.Exec(ctx)
	if redis.IsPermissionError(err) {
		return 0, fmt.Errorf("publish hints: %w: %w", wakebelltype.ErrChannelDenied, err)
	}
	if err != nil {
		return 0, fmt.Errorf("publish hints: %w", scripts.Wrap(ctx, nil, err))
	}
	if s.OnCluster() { // a server counts its own subscribers only
		return math.MaxInt, nil
	}
	for _, reply := range replies {
		if n, ok := reply.(*redis.IntCmd); ok {
			expected += int(n.Val())
		}
	}
	return expected, nil
}

// receive notes the answers in a message. Answers to others are as good.
func (q *question) receive(channel, text string) error {
	for _, e := range eventwire.Decode(q.of[channel], text) {
		a := wakebelltype.NodeAnswer{Topic: e.Topic, Node: e.Node, State: e.State}
		if e.Kind != wakebelltype.EventNode || q.answered[AnswererOf(a)] {
			continue
		}
		q.answered[AnswererOf(a)] = true
		q.answers = append(q.answers, a)
	}
	if q.asked && len(q.answers) >= q.expected {
		return scripts.ErrEnough
	}
	return nil
}
