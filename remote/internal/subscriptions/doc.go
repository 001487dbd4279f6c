// Package subscriptions gives the leases of topics and queues to subscribers. A Router
// has one hub for each topic.
package subscriptions
