// Package access decides what a peer may ask for: tokens and their owners, the rights
// that each request needs, and the keys of queues.
package access
