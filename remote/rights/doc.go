// Package rights defines which actions a principal may perform on which topics,
// queues, gates and recurring schedules of a served node, by patterns of their
// names. Parse reads rights from a file. Set remote.Config.Rights to enforce them.
package rights
