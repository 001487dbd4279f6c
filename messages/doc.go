// Package messages holds what Wakebell's actors say to others: versioned
// protobuf messages of package wakebell.v1. It imports nothing of ours.
package messages

//go:generate protoc --proto_path=.. --go_out=.. --go_opt=paths=source_relative messages/wakebell.proto
