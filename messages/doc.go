// Package messages holds what Wakebell's actors say to others: versioned
// protobuf messages of package wakebell.v1. It imports nothing of ours.
package messages

//go:generate ../scripts/protoc.sh messages/wakebell.proto messages/gateway.proto messages/gates.proto messages/recurring.proto messages/queues.proto messages/remote.proto messages/remind.proto messages/operations.proto messages/services.proto
