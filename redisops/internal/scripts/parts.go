package scripts

import (
	"fmt"
	"slices"
	"strings"
)

// partsOf returns the parts that come before a script, as its header lists them:
//
//	-- Parts: those of the script itself
//	--   variant: those of a variant of it
//	--     and the rest of them
//
// A script without the line has no parts, and no variants. partsOf panics if the header
// has no such variant, which is an error of the build.
func partsOf(name, text, variant string) []string {
	lists := map[string][]string{"": nil}
	open, of := false, ""
	for line := range strings.Lines(text) {
		comment, ok := strings.CutPrefix(line, "--")
		if !ok {
			break
		}
		if words, begins := strings.CutPrefix(comment, " Parts:"); begins {
			open, of = true, ""
			lists[of] = strings.Fields(words)
			continue
		}
		if open = open && strings.HasPrefix(comment, "   "); !open {
			continue
		}
		words := strings.Fields(comment)
		if head, begins := strings.CutSuffix(words[0], ":"); begins {
			of, words = head, words[1:]
		}
		lists[of] = append(lists[of], words...)
	}
	parts, ok := lists[variant]
	if !ok {
		panic(fmt.Sprintf("redisops: script %s: its header has no variant %q", name, variant))
	}
	return slices.Clone(parts)
}
