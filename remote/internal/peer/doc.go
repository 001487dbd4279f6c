// Package peer speaks the protocol of protoactor's remote with peers: it authenticates
// every call, checks every frame, and keeps the links on which peers get their answers.
package peer
