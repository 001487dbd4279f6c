package redistest

import "syscall"

// ChildAttr makes the kernel kill a process when the test process that started it
// ends without cleaning up (a panic, a timeout, a kill). The signal depends on the
// thread that started it; the Go runtime ends only threads that a goroutine keeps
// locked.
func ChildAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
