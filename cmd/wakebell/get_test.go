package main

import "testing"

func TestGet(t *testing.T) {
	b := setup(t)
	b.fine("schedule", "-t", "TOPIC", "--id", "x", "--at", "2031-01-02T15:04:05Z", "--json", `{"a": "\u001b"}`,
		"--header", "b=2", "--header", "a=\x1b[2J", "--correlation-id", "c")
	b.golden("get.txt", b.fine("get", "-t", "TOPIC", "x"))
	b.golden("get.json", b.fine("get", "-t", "TOPIC", "x", "-o", "json"))
}
