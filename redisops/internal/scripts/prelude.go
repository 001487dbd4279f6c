package scripts

import "embed"

//go:embed lua/prelude.lua
var shared embed.FS

// Prelude is what all scripts but bare ones begin with.
func Prelude() string { return sourceOf(shared, "prelude") }
