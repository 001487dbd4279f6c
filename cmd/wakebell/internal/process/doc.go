// Package process has what the program does as a process of its system: it runs shell
// commands as process groups, is the first process of a container, and keeps SIGPIPE from
// ending it.
package process
