// Package remote is Wakebell over the network: actors of other processes
// schedule, take leases and are reminded through protoactor's remote, and any
// program through gRPC.
//
// # Serving
//
// Serve starts protoactor's remote behind a guard. Protoactor by itself lets
// any peer stop any actor, relays for it, dials whom it names and dies of a
// type that it does not know; nothing of that passes the guard. Peers show a
// bearer token or a certificate, reach the gateway and what Config.Allow names,
// and are bounded in all that they can make a node keep.
package remote
