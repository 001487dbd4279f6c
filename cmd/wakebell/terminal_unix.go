//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// terminalSize is how many rows and columns a terminal has; 0: not known.
func terminalSize(w any) (rows, columns int) {
	file, ok := w.(*os.File)
	if !ok {
		return 0, 0
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return 0, 0
	}
	// What fails leaves the size unknown.
	_ = raw.Control(func(fd uintptr) {
		if size, err := unix.IoctlGetWinsize(int(fd), unix.TIOCGWINSZ); err == nil {
			rows, columns = int(size.Row), int(size.Col)
		}
	})
	return rows, columns
}
