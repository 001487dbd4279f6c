//go:build !linux

package redistest

import "syscall"

// ChildAttr cannot tie a process to the test that starts it here: one that is
// killed leaves its processes behind.
func ChildAttr() *syscall.SysProcAttr { return nil }
