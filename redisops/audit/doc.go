// Package audit is the store of the audit: a capped stream with the operations that
// change what others depend on, such as pauses, redrives and purges.
//
// All topics, queues, gates and recurring schedules of a Redis share one stream, so
// that an operator reads one listing. On a Cluster it is in another slot than what an
// operation changes, so an entry is written after its operation.
package audit
