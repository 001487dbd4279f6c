// Package rights says which principal may do what on which topics, queues, gates and
// recurring schedules of a served node, by patterns of their names. Parse reads them
// from a file; remote.Config.Rights has a node keep to them.
package rights
