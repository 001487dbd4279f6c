// Package wire has what a server and a client of it share: the codec, which messages are
// requests and answers, and conversions between messages and the types of Wakebell.
package wire
