// Package subscriptions distributes the leases of topics and queues to subscribers.
// A router has one hub for each topic.
package subscriptions
