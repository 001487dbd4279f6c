//go:build unix

package output

import (
	"os"

	"golang.org/x/sys/unix"
)

// TerminalSize returns the rows and columns of a terminal; 0: unknown.
func TerminalSize(w any) (rows, columns int) {
	file, ok := w.(*os.File)
	if !ok {
		return 0, 0
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return 0, 0
	}
	// An error leaves the size unknown.
	_ = raw.Control(func(fd uintptr) {
		if size, err := unix.IoctlGetWinsize(int(fd), unix.TIOCGWINSZ); err == nil {
			rows, columns = int(size.Row), int(size.Col)
		}
	})
	return rows, columns
}
