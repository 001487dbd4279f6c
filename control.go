package wakebell

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wakebell/wakebell/actors"
	"github.com/wakebell/wakebell/actors/leasing"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/internal/tuning"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/redisops/audit"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Pause stops all nodes from claiming timers of the topic until Resume. Running
// handlers continue; timers can still be scheduled, and wait. Control returns by
// and reason, which have at most 1,024 bytes each. Pause returns the resulting
// Control.
//
// No timer is claimed after Pause has returned: nodes receive the change by Pub/Sub, and a
// node that missed it, with its next exchange, which claims nothing. System.PauseLocal pauses a topic on one node.
func (c *Client) Pause(ctx context.Context, topic, by, reason string) (wakebelltype.Control, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return wakebelltype.Control{}, err
	}
	return c.pause(ctx, full, wakebelltype.Pause{By: by, Reason: reason})
}

// PauseUntil is Pause with an end: after p.For, or at p.Until, by Redis's clock, the topic is
// no longer paused, without Resume. All nodes wake at that instant. Pausing a paused topic
// replaces the end, also by none. ErrInvalid means that both are set, that For is negative,
// or that the instant has passed. Nodes and clients of earlier versions do not know the end: a
// topic stays paused for such nodes until another node or Resume ends the pause, and
// a Pause or Retune of such a client removes the end.
func (c *Client) PauseUntil(ctx context.Context, topic string, p wakebelltype.Pause) (wakebelltype.Control, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return wakebelltype.Control{}, err
	}
	return c.pause(ctx, full, p)
}

func (c *Client) pause(ctx context.Context, full string, p wakebelltype.Pause) (wakebelltype.Control, error) {
	control, err := c.store.PauseUntil(ctx, full, p)
	ends := ""
	if !control.PausedUntil.IsZero() {
		ends = control.PausedUntil.UTC().Format(time.RFC3339)
	}
	c.record(ctx, wakebelltype.AuditTopicPause, full, audit.One(audit.Details("by", p.By, "reason", p.Reason, "until", ends), err))
	return control, err
}

// Resume ends a Pause; Settings stay in force. It returns the resulting Control.
func (c *Client) Resume(ctx context.Context, topic string) (wakebelltype.Control, error) {
	full, err := c.fullName(topic)
	if err != nil {
		return wakebelltype.Control{}, err
	}
	control, err := c.store.Resume(ctx, full)
	c.record(ctx, wakebelltype.AuditTopicResume, full, audit.One("", err))
	return control, err
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
	control, err := c.store.Retune(ctx, full, s)
	c.record(ctx, wakebelltype.AuditTopicRetune, full, audit.One(overrides(s), err))
	return control, err
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
// settings of its topic. It also frees keys that were not freed, and wakes timers for
// which a higher PerKey has room or a higher RateLimitByKey has tokens.
func (s *System) readOverride(keys *timers.TimerSource, h *Handler) func(context.Context) (poller.ClusterOverride, error) {
	return func(ctx context.Context) (poller.ClusterOverride, error) {
		select { // a change of the layout is announced as one of the settings
		case s.divided <- struct{}{}:
		default:
		}
		c, left, mark, err := keys.Control(ctx)
		if err != nil {
			return poller.ClusterOverride{}, err
		}
		flow := leasing.SettingsOf(tuning.Override(leasing.SettingsOf(h.set.tuned).Public(), c.Settings)).Flow
		if err = keys.SweepKeys(ctx, flow); err != nil {
			return poller.ClusterOverride{}, err
		}
		return poller.ClusterOverride{Paused: c.Paused, PausedFor: left, Mark: mark, Apply: overridden(c.Settings)}, nil
	}
}

// overridden returns what applies an override. That of no settings is the same for all topics, so
// that idle ones keep nothing.
func overridden(with wakebelltype.Settings) func(*poller.Settings) {
	if with == (wakebelltype.Settings{}) {
		return overriddenByNone
	}
	set := with // only this case allocates
	return func(to *poller.Settings) { override(to, set) }
}

func overriddenByNone(to *poller.Settings) { override(to, wakebelltype.Settings{}) }

func override(to *poller.Settings, with wakebelltype.Settings) {
	set := leasing.SettingsOf(tuning.Override(to.Public(), with))
	set.Shards, set.Part = to.Shards, to.Part // which users do not set
	*to = set
}

// Errors of the calls that change a running System.
var (
	// ErrNoTopic means that this System does not handle the topic.
	ErrNoTopic = actors.ErrNoTopic
	// ErrTopicTaken means that this System already handles the topic.
	ErrTopicTaken = actors.ErrTopicTaken
	// ErrNotRunning means that the System is not started, or is stopped.
	ErrNotRunning = actors.ErrNotRunning
)

// Add adds a handler to the running System. Errors are ErrInvalid, ErrTopicTaken,
// ErrNotRunning, and those of Start.
func (s *System) Add(ctx context.Context, h Handler) error {
	if err := validateHandler("handler", s.on.Prefix, h); err != nil {
		return err
	}
	topic := s.on.Prefix + h.topic
	if err := s.checkOnce(ctx, h); err != nil {
		return fmt.Errorf("add %q: %w", topic, err)
	}
	if err := s.untilRemoved(ctx, h.topic); err != nil {
		return fmt.Errorf("add %q: %w", topic, err)
	}
	names, err := s.physical(ctx, h)
	if err != nil {
		return fmt.Errorf("add %q: %w", topic, err)
	}
	parts, err := s.partsOf(ctx, h)
	if err != nil {
		return fmt.Errorf("add %q: %w", topic, err)
	}
	return s.change(func(rt *actors.Runtime) error {
		if _, taken := s.handlers[h.topic]; taken {
			return fmt.Errorf("%w: %q", ErrTopicTaken, topic)
		}
		if err := s.handles(h); err != nil {
			return err
		}
		s.parts[h.topic] = parts
		if err := s.addPollers(rt, &h, names); err != nil {
			return err
		}
		s.handlers[h.topic] = &h
		return nil
	})
}

// Remove drains a topic as Stop does, within DrainTimeout, and removes its
// handler. The timers of the topic stay in Redis. Other topics may be changed
// during the drain. Errors are ErrNoTopic, ErrNotRunning, and ErrUnfinished, whose
// text names the handlers that did not return.
func (s *System) Remove(topic string) error {
	var drained *messages.Drained
	removed := make(chan struct{})
	rt, names, err := s.beginRemoval(topic, removed)
	if err == nil {
		drained, err = s.removePollers(rt, names) // without the lock, because a drain takes long
		s.endRemoval(topic, removed, err == nil)
	}
	if err != nil {
		return s.wrapStopped(err)
	}
	return unfinished(drained)
}

// beginRemoval marks a topic as being removed until endRemoval, and returns the sources of
// its pollers.
func (s *System) beginRemoval(topic string, removed chan struct{}) (*actors.Runtime, []string, error) {
	//nolint:forbidigo // DrainTimeout bounds the drain
	if err := s.untilRemoved(context.Background(), topic); err != nil {
		return nil, nil, err
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	rt := s.running()
	switch _, handled := s.handlers[topic]; {
	case rt == nil:
		return nil, nil, ErrNotRunning
	case !handled, s.removing[topic] != nil:
		return nil, nil, fmt.Errorf("%w: %q", ErrNoTopic, topic)
	}
	s.removing[topic] = removed
	return rt, s.polled[topic], nil
}

func (s *System) endRemoval(topic string, removed chan struct{}, done bool) {
	s.changing.Lock()
	defer s.changing.Unlock()
	if done {
		delete(s.handlers, topic)
		delete(s.polled, topic)
		s.queues.Delete(s.on.Prefix + topic) // the next handler of this name may be that of a topic
	}
	delete(s.removing, topic)
	close(removed)
}

// untilRemoved waits while a topic is being removed.
func (s *System) untilRemoved(ctx context.Context, topic string) error {
	s.changing.Lock()
	removed := s.removing[topic]
	s.changing.Unlock()
	if removed == nil {
		return nil
	}
	select {
	case <-removed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// RetuneLocal changes options of a topic on this node: MaxConcurrent, LeaseTTL,
// MaxLeaseAge, PollingInterval, MaxPollingInterval, RetryBackoff, MaxAttempts,
// RateLimit, MaxInFlight, PerKey, RateLimitByKey and FairKeys.
// Client.Retune changes all nodes. Errors are ErrInvalid, ErrNoTopic and
// ErrNotRunning.
//
// The change applies to running handlers too: LeaseTTL from the next extension,
// MaxLeaseAge at once, RetryBackoff and MaxAttempts when the handler returns. A lower
// MaxConcurrent ends none.
func (s *System) RetuneLocal(topic string, opts ...TopicTuningOption) error {
	return s.change(func(rt *actors.Runtime) error {
		h, ok := s.handlers[topic]
		if !ok || s.removing[topic] != nil {
			return fmt.Errorf("%w: %q", ErrNoTopic, topic)
		}
		set := h.set
		if err := set.retune(opts); err != nil {
			return err
		}
		err := s.tuneAll(rt, topic, func(now *poller.Settings) {
			shards, part := now.Shards, now.Part
			*now = s.tunable(set)
			now.Shards, now.Part = shards, part
		})
		if err == nil {
			tuned := *h
			tuned.set = set
			s.handlers[topic] = &tuned
		}
		return err
	})
}

// PauseLocal stops this node from claiming timers of a topic until ResumeLocal.
// Running handlers continue. Client.Pause pauses all nodes. Errors are ErrNoTopic
// and ErrNotRunning.
func (s *System) PauseLocal(topic string) error { return s.pause(topic, true) }

// ResumeLocal ends a PauseLocal; it does not end a Client.Pause. Errors are
// ErrNoTopic and ErrNotRunning.
func (s *System) ResumeLocal(topic string) error { return s.pause(topic, false) }

func (s *System) pause(topic string, paused bool) error {
	return s.change(func(rt *actors.Runtime) error {
		if s.removing[topic] != nil { // its poller must not claim again
			return fmt.Errorf("%w: %q", ErrNoTopic, topic)
		}
		names := s.polled[topic]
		if len(names) == 0 {
			return fmt.Errorf("%w: %q", ErrNoTopic, topic)
		}
		for _, name := range names {
			if err := rt.Pause(name, paused); err != nil {
				return err
			}
		}
		return nil
	})
}

// change serializes changes of the running System.
func (s *System) change(do func(*actors.Runtime) error) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	rt := s.running()
	if rt == nil {
		return ErrNotRunning
	}
	return s.wrapStopped(do(rt))
}

// wrapStopped wraps ErrNotRunning if a change failed because the System was stopped.
func (s *System) wrapStopped(err error) error {
	if errors.Is(err, actors.ErrNoAnswer) && s.running() == nil {
		return fmt.Errorf("%w: %w", ErrNotRunning, err) // it was stopped during the change
	}
	return err
}

// running returns the runtime; nil before Start and after Stop.
func (s *System) running() *actors.Runtime {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending() {
		return nil
	}
	return s.runtime
}
