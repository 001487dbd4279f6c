// Package peer implements the protocol of protoactor's remote: it authenticates
// every call, checks every frame, and keeps the links on which peers receive
// responses.
package peer
