// Package remote gives other processes access to Wakebell over the network:
// actors through the protocol of protoactor's remote, and any program through
// gRPC. Only the node that serves them needs access to Redis.
//
// # Serving
//
// Serve makes a node listen; Run also runs the System. The node speaks the
// protocol of protoactor's remote, so actors of any protoactor-go process can be
// peers. Protoactor's own server lets any peer stop any actor, relays messages,
// dials addresses that a peer names and fails on message types that it does not
// know; this one does none of that (docs/decisions/0010-remote.md). Peers
// authenticate with a bearer token or a certificate. They reach the gateway and
// the actors that Config.Allow names, and what a peer can make a node store is
// bounded.
//
// # Clients
//
// Dial connects a Client to a serving node. A Client has the methods of
// wakebell.Client, so a Topic schedules and cancels through either. Client.Queues,
// Client.Gates and Client.Schedules give access to queues, gates and recurring
// schedules. Client.Subscribe handles timers that the node leases: the handler
// runs in the Client's process, which extends and settles the lease over the link.
package remote
