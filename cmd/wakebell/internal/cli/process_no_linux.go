//go:build unix && !linux

package cli

import "syscall"

// endWithParent does nothing: only Linux can do it.
func endWithParent(*syscall.SysProcAttr) {}
