package wakebell

import (
	"cmp"
	"context"

	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/redisops/timers"
)

// Control is what has been ordered of a topic, for all nodes that handle it. It
// is kept in Redis.
type Control = timers.Control

// Settings override the options that the nodes gave a topic; what is zero is
// left to the node.
type Settings = timers.Settings

// Pause orders all nodes to take no timers of the topic until Resume: what runs
// goes on, and what is scheduled waits. By and reason are kept for whoever
// looks, at most 1,024 bytes each. It returns what is ordered now.
//
// Nodes are told at once; one that missed it reads the order when it is
// connected again. System.PauseLocal is for one node alone.
func (c *Client) Pause(ctx context.Context, topic, by, reason string) (Control, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return Control{}, err
	}
	return c.store.Pause(ctx, full, by, reason)
}

// Resume ends a Pause; settings stay. It returns what is ordered now.
func (c *Client) Resume(ctx context.Context, topic string) (Control, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return Control{}, err
	}
	return c.store.Resume(ctx, full)
}

// Retune puts settings of a topic in force on all nodes, in place of all that
// were; the zero value leaves the nodes to their own options. Handlers that run
// are not touched, and a pause stays. It returns what is ordered now.
func (c *Client) Retune(ctx context.Context, topic string, s Settings) (Control, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return Control{}, err
	}
	return c.store.Retune(ctx, full, s)
}

// Control returns what is ordered of a topic; the zero value: nothing.
func (c *Client) Control(ctx context.Context, topic string) (Control, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return Control{}, err
	}
	return c.store.Control(ctx, full)
}

// order reads for the actors what is ordered of a topic.
func (s *System) order(topic string) func(context.Context) (poller.ClusterOverride, error) {
	return func(ctx context.Context) (poller.ClusterOverride, error) {
		c, err := s.store.Control(ctx, topic)
		if err != nil {
			return poller.ClusterOverride{}, err
		}
		return poller.ClusterOverride{Paused: c.Paused, Apply: func(to *poller.Settings) { override(to, c.Settings) }}, nil
	}
}

// override puts what is ordered in place of a node's own settings. Where the
// two together make no sense, the caps give way.
func override(to *poller.Settings, with Settings) {
	to.MaxConcurrent = cmp.Or(with.MaxConcurrent, to.MaxConcurrent)
	to.LeaseTTL = cmp.Or(with.LeaseTTL, to.LeaseTTL)
	to.MaxLeaseAge = max(cmp.Or(with.MaxLeaseAge, to.MaxLeaseAge), 0)
	to.PollingInterval = cmp.Or(with.PollingInterval, to.PollingInterval)
	to.MaxPollingInterval = max(cmp.Or(with.MaxPollingInterval, to.MaxPollingInterval), to.PollingInterval)
	to.Retry.Initial = cmp.Or(with.RetryInitial, to.Retry.Initial)
	to.Retry.Max = max(cmp.Or(with.RetryLimit, to.Retry.Max), to.Retry.Initial)
	to.Retry.MaxFailures = cmp.Or(with.MaxAttempts, to.Retry.MaxFailures)
}
