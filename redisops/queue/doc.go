// Package queue is the store of queues in Redis. The keys and the bytes of messages
// are shared with redis-message-queue.
//
// It carries no promise of compatibility: use package wakebell.
//
// A [Queue] publishes messages and lists, redrives and removes dead letters.
// [Queue.Source] returns the source from which a poller claims leases, one
// [exchange.Request] at a time, as package timers does for the timers of a topic.
package queue
