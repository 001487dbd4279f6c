// Package clients tests the clients for Python and TypeScript against real nodes.
//
// Their messages are generated from messages/*.proto and committed: their users, and
// installations from a checkout, need no protoc, and a change of the protocol shows in
// the review.
package clients

//go:generate ../scripts/protoc-clients.sh
