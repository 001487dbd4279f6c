// Package wire holds what server and client share: the codec, the lists of requests
// and responses, and conversions between messages and the types of Wakebell.
package wire
