// Package messages holds the messages between Wakebell's actors and their
// clients: versioned protobuf messages of package wakebell.v1. The names and
// numbers of their fields are stable; the Go helpers carry no compatibility
// promise. It imports no other package of this module.
package messages

//go:generate ../scripts/protoc.sh messages/wakebell.proto messages/gateway.proto messages/gates.proto messages/recurring.proto messages/queues.proto messages/remote.proto messages/remind.proto messages/operations.proto messages/services.proto
