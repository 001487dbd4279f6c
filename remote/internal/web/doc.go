// Package web translates requests of HTTP with JSON to the messages of the gRPC
// service, and answers to JSON. It decides nothing: its Node authenticates, permits,
// bounds and carries out the requests.
package web
