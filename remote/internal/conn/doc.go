// Package conn bounds the connections of a listener, and the messages that arrive on
// them before anything of them is decoded.
package conn
