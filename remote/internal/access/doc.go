// Package access decides what a peer may request: it knows the owners of tokens, the
// rights that each request needs, and the keys of queues.
package access
