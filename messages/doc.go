// Package messages holds the messages between Wakebell's actors and their
// clients: versioned protobuf messages of package wakebell.v1. Its subpackages
// exchange and gate hold the requests of the actors to the stores, as plain structs,
// and rpc has the gRPC servers and clients.
// The names and numbers of protobuf fields are stable; the Go helpers carry no
// compatibility promise. Package messages imports no other package of this module.
package messages

//go:generate ../scripts/protoc.sh messages/wakebell.proto messages/gateway.proto messages/endings.proto messages/gates.proto messages/recurring.proto messages/queues.proto messages/remote.proto messages/remind.proto messages/operations.proto messages/services.proto
