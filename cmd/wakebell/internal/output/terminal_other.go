//go:build !unix

package output

// TerminalSize returns the rows and columns of a terminal; 0: unknown.
func TerminalSize(any) (rows, columns int) { return 0, 0 }
