// Package rpc has the gRPC servers and clients of messages/services.proto, generated
// by protoc-gen-go-grpc. It is apart from package messages so that programs without
// gRPC do not link it.
package rpc
