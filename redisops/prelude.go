package redisops

// prelude is what all scripts but bare ones begin with.
func prelude() string { return source(luaFiles, "prelude") }
