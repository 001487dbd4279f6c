package scripts

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var use = regexp.MustCompile(`\b(KEYS|ARGV)\.(\w+)`)

// positions replaces KEYS.name and ARGV.name in a script by KEYS[n] and ARGV[n]. The
// header of the script, its lines "-- KEYS: …" and "-- ARGV: …", is the one place
// that says which position a name has. ARGV_NAMED becomes the number of arguments
// with names; the others follow them. positions panics if the header does not have a
// name once, which is an error of the build.
func positions(script, text string) string {
	text = strings.ReplaceAll(text, "ARGV_NAMED", strconv.Itoa(named(HeaderNames(text, "ARGV"))))
	return use.ReplaceAllStringFunc(text, func(found string) string {
		kind, name, _ := strings.Cut(found, ".")
		names := HeaderNames(text, kind)
		at := slices.Index(names, name)
		if at < 0 || slices.Contains(names[at+1:], name) {
			panic(fmt.Sprintf("redisops: script %s: %s is not once in its header", script, found))
		}
		return fmt.Sprintf("%s[%d]", kind, at+1)
	})
}

// named returns the number of words without the "..." at the end.
func named(words []string) int {
	if n := len(words); n > 0 && words[n-1] == "..." {
		return n - 1
	}
	return len(words)
}

// HeaderNames returns the words that the header of a script has for KEYS or ARGV. A
// last "..." stands for further ones without names.
func HeaderNames(text, kind string) []string {
	for line := range strings.Lines(text) {
		if words, ok := strings.CutPrefix(line, "-- "+kind+":"); ok {
			names := strings.Fields(words)
			return slices.DeleteFunc(names, func(name string) bool { return name == "none" })
		}
		if !strings.HasPrefix(line, "--") {
			break
		}
	}
	return nil
}
