package scripts

import (
	"slices"

	"github.com/redis/go-redis/v9"
)

// Built is a script that a store runs.
type Built struct {
	Name   string   // its package and its files: "timers/exchange"
	Parts  []string // what comes before it; they distinguish the variants of a name
	Script *redis.Script
}

// built has every script that was made. Packages make theirs while they are initialized,
// one after another.
var built []Built

// All returns every script of the packages that the program has, so that tests can show
// that they know them all.
func All() []Built { return slices.Clone(built) }

// build makes a script of parts and of the text after them.
func (s *Set) build(name string, parts []string, rest string) *redis.Script {
	return s.list(name, parts, redis.NewScript(s.joined(parts, rest)))
}

func (s *Set) list(name string, parts []string, script *redis.Script) *redis.Script {
	built = append(built, Built{Name: s.name + "/" + name, Parts: slices.Clone(parts), Script: script})
	return script
}
