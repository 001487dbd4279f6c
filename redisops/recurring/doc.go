// Package recurring is the store of recurring schedules in Redis. The keys and the
// bytes of entries are shared with RedBeat. Package internal/recur reads and writes
// them, and package internal/firing decides what fires.
//
// It carries no promise of compatibility: use package wakebell.
package recurring
