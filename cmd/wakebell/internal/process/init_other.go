//go:build !linux

package process

// RunAsInit does nothing: only Linux has containers.
func RunAsInit() (code int, done bool) { return 0, false }
