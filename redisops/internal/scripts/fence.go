package scripts

import "errors"

// ErrStaleLayout reports that a call was routed with a layout that its topic does not have
// any more. Nothing was written.
var ErrStaleLayout = errors.New("the layout of the topic has changed")

// Guard is a condition that lua/fence.lua checks before a script writes.
type Guard struct {
	Code byte   // l: of a layout; p: of pins
	Key  string // that has it
	Want string // the identity of the layout, or the call
}

// WithGuards adds guards to the keys and arguments of a script with the part fence. Such a
// script needs its argument without guards, too.
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
