// Package wakebelltype declares the data that clients, nodes and stores share:
// what a timer, a topic, a gate, a queue and a dead letter are in Redis, and the
// outcomes of the calls that change them. It has no behaviour and imports no other
// package of this module, so every layer can use it.
//
// Values come from the packages wakebell, gate, queue, recurring and remote; the
// enumerations have the words of the command line as their String.
package wakebelltype
