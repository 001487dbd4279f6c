package scripts

import "embed"

//go:embed lua/prelude.lua
var shared embed.FS

// Prelude returns the text with which all scripts except bare ones begin.
func Prelude() string { return sourceOf(shared, "prelude") }
