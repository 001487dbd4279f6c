//go:build !linux

package redistest

// reserve does nothing: this system has no abstract unix sockets.
func reserve(int) error { return nil }
