package process

import "syscall"

// endWithParent lets the kernel kill a process when the thread that starts it ends, so
// also when this process is killed.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
