// Package remote is Wakebell over the network: actors of other processes
// schedule, take leases and are reminded through protoactor's remote, and any
// program through gRPC.
//
// # Serving
//
// Serve speaks the protocol of protoactor's remote, so that actors of any
// protoactor-go process are peers. Protoactor's own server lets any peer stop
// any actor, relays for it, dials whom it names and dies of a type that it does
// not know; this one does nothing of that (docs/decisions/0010-remote.md). Peers show a
// bearer token or a certificate, reach the gateway and what Config.Allow names,
// and are bounded in all that they can make a node keep.
package remote
