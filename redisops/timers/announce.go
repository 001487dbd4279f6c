package timers

import (
	"context"
	"fmt"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

// Announce writes or removes the announcement of a node, and returns the nodes of the
// topic that are announced, in no particular order. The other nodes are notified of a
// change by a hint, exchange.HintJoined or exchange.HintLeft. Announcements that have
// expired are removed. Errors are those of Exchange.
func (t *TimerSource) Announce(ctx context.Context, a exchange.Announcement) ([]string, error) {
	list, err := t.timers.RunList(ctx, 0, announceScript, []string{t.keys.nodes, t.keys.Hint},
		string(a.Action), a.Node, a.Lease.Milliseconds())
	if err != nil {
		return nil, fmt.Errorf("announce %q on %q: %w", a.Node, t.topic, err)
	}
	return scripts.Texts(list)
}

// AskForHelp asks the announced nodes up to a rank to claim as well, by a hint,
// exchange.HintHelp. Errors wrap [redisops.ErrChannelDenied] or
// [exchange.ErrUnavailable].
func (t *TimerSource) AskForHelp(ctx context.Context, rank int) error {
	return t.timers.publish(ctx, t.keys.Hint, fmt.Appendf(nil, "help %d", rank))
}
