package wakebell

import (
	"context"

	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/internal/tuning"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Pause stops all nodes from claiming timers of the topic until Resume. Running
// handlers continue; timers can still be scheduled, and wait. Control returns by
// and reason, which have at most 1,024 bytes each. Pause returns the resulting
// Control.
//
// Nodes receive the change by Pub/Sub; a node that missed it applies it when it
// reconnects. System.PauseLocal pauses a topic on one node.
func (c *Client) Pause(ctx context.Context, topic, by, reason string) (wakebelltype.Control, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return wakebelltype.Control{}, err
	}
	return c.store.Pause(ctx, full, by, reason)
}

// Resume ends a Pause; Settings stay in force. It returns the resulting Control.
func (c *Client) Resume(ctx context.Context, topic string) (wakebelltype.Control, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return wakebelltype.Control{}, err
	}
	return c.store.Resume(ctx, full)
}

// Retune overrides the options of a topic on all nodes. It replaces all earlier
// overrides; the zero value removes them. A pause stays in force. Retune returns the
// resulting Control.
//
// The change applies to running handlers too: LeaseTTL from the next extension,
// MaxLeaseAge at once, the retry settings when the handler returns. A lower
// MaxConcurrent ends none.
func (c *Client) Retune(ctx context.Context, topic string, s wakebelltype.Settings) (wakebelltype.Control, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return wakebelltype.Control{}, err
	}
	return c.store.Retune(ctx, full, s)
}

// Control returns the cluster-wide settings of a topic; the zero value means
// that there are none.
func (c *Client) Control(ctx context.Context, topic string) (wakebelltype.Control, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return wakebelltype.Control{}, err
	}
	return c.store.Control(ctx, full)
}

// readOverride returns the function by which a poller reads the cluster-wide
// settings of its topic.
func (s *System) readOverride(topic string) func(context.Context) (poller.ClusterOverride, error) {
	return func(ctx context.Context) (poller.ClusterOverride, error) {
		c, err := s.store.Control(ctx, topic)
		if err != nil {
			return poller.ClusterOverride{}, err
		}
		return poller.ClusterOverride{Paused: c.Paused, Apply: func(to *poller.Settings) {
			*to = pollerSettings(tuning.Override(settingsOf(*to), c.Settings))
		}}, nil
	}
}
