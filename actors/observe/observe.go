// Package observe has what operators see of a node: counters of topics, steps of Redis's
// clock, calls of the dead-letter hook, the counts and attempts that are recorded in Redis,
// and events for watchers. Nothing of it delays a delivery: what does not fit is dropped and
// counted. The package carries no compatibility promise; use package wakebell.
package observe
