// Package transfer writes a topic to a file and reads it from one: it connects the format
// of package topicfile with the store of package shards.
package transfer
