// Package progress is the store of what handlers write while they run: the body that
// replaces that of a timer (a checkpoint), how far it is, and its result.
//
// It carries no promise of compatibility: use package wakebell.
//
// # Fence
//
// Each write has the token of the handler's lease, which is the exact expiry that was last
// written to the timeline, and is refused when the timeline has another one: the lease was
// lost, or the timer was cancelled or scheduled again. A leased timer stays in its physical
// topic until it is settled, also while its topic gets other shards. So the token is all
// that has to be compared, as for the settlements of an exchange.
package progress
