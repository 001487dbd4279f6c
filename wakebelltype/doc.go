// Package wakebelltype declares the results, settings and enumerations that
// clients, nodes and stores share. It calls no other package of this module, so
// every layer can use it.
//
// Values come from the packages wakebell, gate, queue, recurring and remote. The
// String method of an enumeration returns the words that the command line prints.
package wakebelltype
