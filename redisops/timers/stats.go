package timers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/metrics"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	statsSample = 1000 // lease records that Stats reads
	// backlogSample is how many lease records Backlog reads of each of many topics.
	backlogSample = 100
	statsValues   = 13 // values in the reply of its script
)

// Stats returns the statistics of a topic. It runs one script, whose cost does not
// grow with the topic.
func (s *Timers) Stats(ctx context.Context, topic string) (wakebelltype.Stats, error) {
	if err := layout.CheckTopic(topic); err != nil {
		return wakebelltype.Stats{}, err
	}
	list, err := s.RunList(ctx, statsValues, statsScript, statsKeys(s.keys.Of(topic)), statsSample)
	if err != nil {
		return wakebelltype.Stats{}, fmt.Errorf("stats of %q: %w", topic, err)
	}
	return readStats(list)
}

// statsKeys are the keys of the script without that of the payloads, which needs a right of
// its own.
func statsKeys(k TopicKeys) []string {
	return []string{k.Timeline, k.Leases, k.Dead, k.Control, k.Timeline}
}

// damageKeys are the keys with which the script also counts the payloads.
func damageKeys(k TopicKeys) []string {
	return []string{k.Timeline, k.Leases, k.Dead, k.Control, k.Payloads}
}

func readStats(list []any) (wakebelltype.Stats, error) {
	var st wakebelltype.Stats
	values, err := scripts.Texts(list)
	if err != nil {
		return st, err
	}
	if len(values) < statsValues {
		return st, fmt.Errorf("%w: %d values of stats", scripts.ErrReply, len(values))
	}
	var records, read, leased, retrying int64
	if st.Parked, err = strconv.ParseInt(values[10], 10, 64); err != nil {
		return wakebelltype.Stats{}, fmt.Errorf("%w: %w", scripts.ErrReply, err)
	}
	for i, into := range []*int64{&st.Total, &st.Due, &st.Dead, &records, &read, &leased, &retrying} {
		var err error
		if *into, err = strconv.ParseInt(values[1+i], 10, 64); err != nil {
			return wakebelltype.Stats{}, fmt.Errorf("%w: %w", scripts.ErrReply, err)
		}
	}
	st.Estimated = read < records
	later := st.Total - st.Due - st.Parked
	if read == 0 { // the caller needs no estimates
		leased, retrying = 0, 0
	}
	scale := func(n int64) int64 {
		if st.Estimated {
			n = int64(math.Round(float64(n) / float64(read) * float64(records)))
		}
		n = min(n, later)
		later -= n
		return n
	}
	st.Leased, st.Retrying = scale(leased), scale(retrying)
	st.Pending = later
	now, err := scripts.ReadScore(values[0])
	if err != nil {
		return wakebelltype.Stats{}, err
	}
	if values[8] != "" {
		oldest, err := scripts.ReadScore(values[8])
		if err != nil {
			return wakebelltype.Stats{}, err
		}
		st.OldestDue, st.Lag = scripts.Instant(oldest), scripts.Between(oldest, now)
	}
	if values[9] != "" {
		st.Paused, st.PausedAt = true, scripts.ReadInstant(values[9])
	}
	if values[12] != "" {
		st.PausedUntil = scripts.ReadInstant(values[12])
	}
	return st, nil
}

// damageOf says what is missing of a topic, by the reply of the script; empty: nothing is
// known to be. Where payloads and timers were lost in about equal numbers, it sees nothing.
func damageOf(list []any, k TopicKeys) string {
	values, err := scripts.Texts(list)
	if err != nil || len(values) < statsValues {
		return ""
	}
	total, err1 := strconv.ParseInt(values[1], 10, 64)
	payloads, err2 := strconv.ParseInt(values[11], 10, 64)
	switch {
	case err1 != nil || err2 != nil:
		return ""
	case layout.Excessive(payloads-total, payloads):
		return fmt.Sprintf("%d of %d payloads have no timer in %q and stay; wakebell repair shows what can be restored", payloads-total, payloads, k.Timeline)
	case layout.Excessive(total-payloads, total):
		return fmt.Sprintf("%d of %d timers have no payload in %q; each becomes a dead letter when it is due", total-payloads, total, k.Payloads)
	default:
		return ""
	}
}

// backlogPage is how many topics one round trip of Backlog reads.
const backlogPage = 1000

// Backlog returns the backlog of all registered topics whose name has the prefix, for
// metrics. Nodes share the result: one of them reads it in a round trip for 1,000
// topics, and stores it for as long as [metrics.Lifetime] says. All others read what
// it stored. A topic whose keys cannot be read is Unreadable.
func (s *Timers) Backlog(ctx context.Context, prefix string) ([]metrics.Backlog, error) {
	all, err := s.storedBacklog(ctx)
	if err != nil {
		return nil, err
	}
	if all == nil {
		if all, err = s.readBacklog(ctx); err != nil {
			return nil, err
		}
		s.storeBacklog(ctx, all)
	}
	return slices.DeleteFunc(all, func(b metrics.Backlog) bool { return !strings.HasPrefix(b.Topic, prefix) }), nil
}

// storedBacklog returns what a node has stored; nil: nothing that can be read. A user
// without the right to the key reads the topics itself.
func (s *Timers) storedBacklog(ctx context.Context) ([]metrics.Backlog, error) {
	text, err := s.RDB.Get(ctx, s.keys.Backlog).Bytes()
	if err = scripts.Wrap(ctx, nil, err); errors.Is(err, exchange.ErrUnavailable) || ctx.Err() != nil {
		return nil, fmt.Errorf("backlog in %q: %w", s.keys.Backlog, err)
	}
	var all []metrics.Backlog
	if err != nil || json.Unmarshal(text, &all) != nil {
		return nil, nil
	}
	return all, nil
}

// storeBacklog stores the backlog for the other nodes. Without the right to the key, or
// memory for it, each node reads the topics.
func (s *Timers) storeBacklog(ctx context.Context, all []metrics.Backlog) {
	if text, err := json.Marshal(all); err == nil {
		_ = s.RDB.Set(ctx, s.keys.Backlog, text, metrics.Lifetime(len(all))).Err()
	}
}

func (s *Timers) readBacklog(ctx context.Context) ([]metrics.Backlog, error) {
	pipe := s.RDB.Pipeline()
	clock, members := pipe.Time(ctx), pipe.SMembers(ctx, s.keys.Topics)
	_, _ = pipe.Exec(ctx) // each reply has its own error
	topics, err := members.Result()
	now, clockErr := clock.Result()
	if err = cmp.Or(err, clockErr); err != nil {
		return nil, fmt.Errorf("topics in %q: %w", s.keys.Topics, scripts.Wrap(ctx, nil, err))
	}
	slices.Sort(topics)
	all := make([]metrics.Backlog, 0, len(topics))
	for page := range slices.Chunk(topics, backlogPage) {
		read, err := s.backlogPage(ctx, page, now)
		if err != nil {
			return nil, err
		}
		all = append(all, read...)
	}
	return all, nil
}

func (s *Timers) backlogPage(ctx context.Context, topics []string, now time.Time) ([]metrics.Backlog, error) {
	pipe := s.RDB.Pipeline()
	replies, channels, ahead := make([]*redis.Cmd, len(topics)), make([]string, len(topics)), make([][]*redis.IntCmd, len(topics))
	for i, topic := range topics {
		k := s.keys.Of(topic)
		replies[i], channels[i] = statsScript.EvalSha(ctx, pipe, statsKeys(k), backlogSample), k.Hint
		for _, w := range metrics.Windows {
			ahead[i] = append(ahead[i], pipe.ZCount(ctx, k.Timeline, "("+scripts.ScoreText(now), scripts.ScoreText(now.Add(w.Span))))
		}
	}
	listening := s.listeners(ctx, pipe, channels)
	_, err := pipe.Exec(ctx) // each reply has its own error
	if err := scripts.Wrap(ctx, nil, err); errors.Is(err, exchange.ErrUnavailable) || ctx.Err() != nil {
		return nil, fmt.Errorf("backlog: %w", err)
	}
	nodes := listening()
	all := make([]metrics.Backlog, 0, len(topics))
	for i, topic := range topics {
		st, _, err := s.readStatsReply(ctx, topic, replies[i])
		if err != nil {
			all = append(all, metrics.Backlog{Topic: topic, Unreadable: true, Fault: metrics.ClassOf(err)})
			continue
		}
		b := metrics.Backlog{
			Topic: topic, Due: st.Due, Parked: st.Parked, Pending: st.Total - st.Due - st.Parked, Dead: st.Dead, OldestDue: max(st.Lag, 0), Nodes: -1,
			Paused: st.Paused, Running: st.Leased, Retrying: st.Retrying,
		}
		if n, known := nodes[channels[i]]; known {
			b.Nodes = n
		}
		for _, count := range ahead[i] {
			b.Ahead = append(b.Ahead, count.Val())
		}
		all = append(all, b)
	}
	return all, nil
}

// Listeners returns how many connections listen on channels. What cannot be asked is
// missing.
func (s *Timers) Listeners(ctx context.Context, channels []string) map[string]int64 {
	pipe := s.RDB.Pipeline()
	listening := s.listeners(ctx, pipe, channels)
	_, _ = pipe.Exec(ctx) // without a reply, nothing is known
	return listening()
}

// listeners adds the question how many connections listen on channels to a pipeline,
// and returns what reads the answer. In a Cluster every master is asked separately,
// because each knows its own connections; what cannot be asked is unknown.
func (s *Timers) listeners(ctx context.Context, pipe redis.Pipeliner, channels []string) func() map[string]int64 {
	if !s.OnCluster() {
		reply := pipe.PubSubNumSub(ctx, channels...)
		return func() map[string]int64 { return reply.Val() }
	}
	return func() map[string]int64 {
		nodes, err := s.Nodes(ctx)
		if err != nil {
			return nil
		}
		sum := map[string]int64{}
		for _, node := range nodes {
			counts, err := node.PubSubNumSub(ctx, channels...).Result()
			if err != nil {
				return nil
			}
			for channel, n := range counts {
				sum[channel] += n
			}
		}
		return sum
	}
}

// MostDueSteps is the maximum number of steps of [Timers.CountDue].
const MostDueSteps = 1500

// duePage is how many counts one round trip asks for.
const duePage = 500

// CheckDue checks the arguments of CountDue.
func CheckDue(step time.Duration, n int) error {
	if step < time.Millisecond {
		return argument.Invalid("step", "%v, want at least 1ms", step)
	}
	if n < 1 || n > MostDueSteps {
		return argument.Invalid("n", "%d, want 1 to %d", n, MostDueSteps)
	}
	return nil
}

// CountDue counts the timers of a physical topic whose instants, or next attempts, are in each
// of n steps from an instant on. A timer that runs counts when its lease expires. The cost
// grows with n, and with the logarithm of the number of timers.
func (s *Timers) CountDue(ctx context.Context, topic string, from time.Time, step time.Duration, n int) ([]int64, error) {
	if err := layout.CheckTopic(topic); err != nil {
		return nil, err
	}
	if err := CheckDue(step, n); err != nil {
		return nil, err
	}
	timeline, counts := s.keys.Of(topic).Timeline, make([]int64, 0, n)
	for len(counts) < n {
		page := min(duePage, n-len(counts))
		answers, err := s.RDB.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for i := range page {
				begin := from.Add(time.Duration(len(counts)+i) * step)
				pipe.ZCount(ctx, timeline, scripts.ScoreText(begin), "("+scripts.ScoreText(begin.Add(step)))
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("count the timers of %q: %w", topic, scripts.Wrap(ctx, nil, err))
		}
		for _, answer := range answers {
			count, _ := answer.(*redis.IntCmd) // what ZCount adds
			counts = append(counts, count.Val())
		}
	}
	return counts, nil
}
