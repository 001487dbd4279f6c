//go:build unix && !linux

package process

import "syscall"

// endWithParent does nothing: only Linux can do it.
func endWithParent(*syscall.SysProcAttr) {}
