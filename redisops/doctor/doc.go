// Package doctor examines whether a Redis is fit to store the timers of topics: its
// version, memory, persistence and replicas, the user's rights, and the keys of the
// topics. It changes nothing.
//
// It carries no promise of compatibility: use package wakebell.
package doctor
