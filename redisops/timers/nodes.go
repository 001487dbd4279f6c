package timers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/messages/exchange"
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
