package actors

import "github.com/asynkron/protoactor-go/actor"

// WithPollerOptions adds options to the props of all pollers.
func (c Config) WithProps(options ...actor.PropsOption) Config {
	c.props = options
	return c
}

// PollerName is the actor name of a topic's poller.
func PollerName(topic string) string { return pollerName(topic) }
