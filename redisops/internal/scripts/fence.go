package scripts

import (
	"errors"

	"github.com/redis/go-redis/v9"
)

// ErrStaleLayout reports that a call was routed with a layout that its topic does not have
// any more. Nothing was written.
var ErrStaleLayout = errors.New("the layout of the topic has changed")

// Guard is a condition that lua/fence.lua checks before a script writes.
type Guard struct {
	Code byte   // l: of a layout; p: of pins
	Key  string // that has it
	Want string // the identity of the layout, or the call
}

// WithGuards adds guards to the keys and arguments of a script of Fenced, FencedVariant or
// FencedWithin. Such a script needs its argument without guards, too.
func WithGuards(guards []Guard, keys []string, args []any) ([]string, []any) {
	if len(guards) == 0 {
		return keys, append(args, "")
	}
	codes := make([]byte, len(guards))
	for i, g := range guards {
		codes[i] = g.Code
		keys, args = append(keys, g.Key), append(args, g.Want)
	}
	return keys, append(args, string(codes))
}

// Fenced is Load for a script that writes to topics, which lua/fence.lua may refuse.
func (s *Set) Fenced(name string, parts ...string) *redis.Script {
	script := s.FencedVariant(name, parts...)
	s.Loaded[name], s.Guards[name] = script, true
	return script
}

// FencedVariant is Variant for a script that writes to topics.
func (s *Set) FencedVariant(name string, parts ...string) *redis.Script {
	return s.build(name, parts, s.Source("fence")+s.Source(name))
}

// FencedWithin is Within for a script that writes to topics. What around does comes first:
// a call that was carried out before is answered, with any layout.
func (s *Set) FencedWithin(around, name string, parts ...string) *redis.Script {
	s.Parts[around] = true
	return s.build(around+" "+name, parts, "local function work()\n"+s.Source("fence")+s.Source(name)+"end\n"+s.Source(around))
}
