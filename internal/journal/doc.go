// Package journal stores the commands of an embedded server in a directory, so that
// they survive the process and the machine.
//
// A log has the commands in the order of their execution; a snapshot has commands that
// make the state at the beginning of the log with its number. Both are sequences of
// records with length and checksum behind a header with the version of the format.
// Files with lower numbers than the last snapshot are removed.
//
// # Torn or damaged
//
// A record that cannot be read is torn if it was never reported as stored: it is cut
// off with everything behind it. It is damaged if it was: then nothing is removed and
// the directory is not opened. To tell them apart, each record has the number of the
// last record that was known to be on the disk when it was written.
package journal
