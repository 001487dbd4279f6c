//go:build !linux

package redistest

import "syscall"

// ChildAttr does nothing on this system: a killed test leaves its processes behind.
func ChildAttr() *syscall.SysProcAttr { return nil }
