package scripts

import "embed"

// shared has the prelude, and the parts that scripts of several packages have.
//
//go:embed lua/*.lua
var shared embed.FS

// Prelude returns the text with which all scripts except bare ones begin.
func Prelude() string { return sourceOf(shared, "prelude") }
