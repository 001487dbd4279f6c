//go:build !linux

package redistest

import "syscall"

// childAttr cannot tie a server to the test process here: one that is killed
// leaves its servers behind.
func childAttr() *syscall.SysProcAttr { return nil }
