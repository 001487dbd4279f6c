package actors

import "github.com/asynkron/protoactor-go/actor"

// WithProps sets options of the props of all actors but the supervisor.
func (c Config) WithProps(options ...actor.PropsOption) Config {
	c.props = options
	return c
}

// PollerName is the actor name of a topic's poller.
func PollerName(topic string) string { return pollerName(topic) }
