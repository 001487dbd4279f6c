// Package gates is the store of gates in Redis: a gate lets one process at a time
// have the turn, in the order of their tickets.
//
// It carries no promise of compatibility: use package wakebell.
//
// A gate is a stream of tickets, a state, and a guard that refuses stale fencing
// tokens. The layout is shared with redis-fifo-lock. [Store.Guard] is the guard,
// and [Store.Show], [Store.Repair] and [Store.Remove] are for operators.
package gates
