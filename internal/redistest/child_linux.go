package redistest

import "syscall"

// childAttr ties a server to the test process: the kernel kills it when the
// tests end without cleaning up (a panic, a timeout, a kill). The signal is
// bound to the thread that started the server; the Go runtime ends no thread
// but those that a goroutine has locked for good.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
