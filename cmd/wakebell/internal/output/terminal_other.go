//go:build !unix

package main

// terminalSize returns the rows and columns of a terminal; 0: unknown.
func terminalSize(any) (rows, columns int) { return 0, 0 }
