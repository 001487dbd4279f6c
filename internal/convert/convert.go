// Package convert converts between Go values and messages: fields such as instants and
// counts, and the types of the public packages below wakebell that go to the gateway of a
// System and back.
package convert
