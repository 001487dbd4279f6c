//go:build !unix

package main

// terminalSize is how many rows and columns a terminal has; 0: not known.
func terminalSize(any) (rows, columns int) { return 0, 0 }
