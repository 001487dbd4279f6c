package timers

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

// Announce writes or removes the announcement of a node, and returns those of the topic
// that are left. The other nodes are notified of a
// change by a hint, exchange.HintJoined or exchange.HintLeft. Announcements that have
// expired are removed. Errors are those of Exchange.
func (t *TimerSource) Announce(ctx context.Context, a exchange.Announcement) (exchange.Announced, error) {
	list, err := t.timers.RunList(ctx, 1, announceScript, []string{t.keys.Nodes, t.keys.Hint},
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
// exchange.HintHelp. Errors wrap [redisops.ErrChannelDenied] or
// [exchange.ErrUnavailable].
func (t *TimerSource) AskForHelp(ctx context.Context, rank int) error {
	return t.timers.publish(ctx, t.keys.Hint, fmt.Appendf(nil, "help %d", rank))
}
