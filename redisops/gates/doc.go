// Package gates is the store of gates in Redis. A gate is a FIFO lock: one process
// at a time has the turn, in the order of tickets.
//
// It carries no promise of compatibility: use package wakebell.
//
// A gate consists of a stream of tickets, a state, and a guard that rejects stale
// fencing tokens. The layout is shared with redis-fifo-lock. [Store.Guard] is the
// guard; [Store.Show], [Store.Repair] and [Store.Remove] are for operators.
package gates
