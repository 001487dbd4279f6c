// Package conn bounds the connections of a listener, and the messages that arrive on
// them before they are decoded.
package conn
