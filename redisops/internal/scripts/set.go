package scripts

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Set are the scripts of one package, files of its folder lua.
type Set struct {
	name   string                   // of the package
	Files  embed.FS                 // the folder lua
	others []embed.FS               // of packages whose parts it uses
	Loaded map[string]*redis.Script // scripts by the names of their files
	Parts  map[string]bool          // files that are parts of scripts
	Guards map[string]bool          // scripts with the part fence, by their names
}

// NewSet returns the scripts of a package, by its name, that has embedded its folder lua.
// It may use parts of other packages.
func NewSet(name string, files embed.FS, others ...embed.FS) *Set {
	return &Set{name: name, Files: files, others: others, Loaded: map[string]*redis.Script{}, Parts: map[string]bool{}, Guards: map[string]bool{}}
}

// Load reads a script, which begins with the prelude and with the parts that its header
// lists. It panics if a file is missing, which is an error of the build.
func (s *Set) Load(name string) *redis.Script {
	script := s.Variant(name, "")
	s.Loaded[name] = script
	return script
}

// Variant returns the script name with the parts of a variant in its header. A call of it
// may have more keys and arguments than the header says: those that its parts use.
func (s *Set) Variant(name, variant string) *redis.Script {
	return s.Composed(name, s.PartsOf(name, variant))
}

// Composed returns the script name with other parts than its header lists, for tests.
func (s *Set) Composed(name string, parts []string) *redis.Script {
	parts, body := s.fenced(name, parts)
	return s.build(name, parts, body)
}

// Within returns a variant of a script in which around calls it as its function work:
// keyed.lua and once.lua store its answer and do not run it twice. What around does comes
// before the fence: a call that was carried out before is answered, with any layout.
func (s *Set) Within(around, name, variant string) *redis.Script {
	s.Parts[around] = true
	parts, body := s.fenced(name, s.PartsOf(name, variant))
	return s.build(around+" "+name, parts, "local function work()\n"+body+"end\n"+s.Source(around))
}

// PartsOf returns the parts of a variant of a script; the variant "" is the script itself.
func (s *Set) PartsOf(name, variant string) []string {
	return partsOf(name, sourceOf(s.Files, name), variant)
}

// fenced returns the parts of a script without the fence, and its text with it. Fence is
// the last part of scripts that write to topics, which it may refuse.
func (s *Set) fenced(name string, parts []string) (others []string, body string) {
	n := len(parts) - 1
	if n < 0 || parts[n] != "fence" {
		return parts, s.Source(name)
	}
	s.Guards[name] = true
	return parts[:n], s.Source("fence") + s.Source(name)
}

// Bare returns a script without the prelude and its own comments. Its text is sent
// with each call, so it must be short.
func (s *Set) Bare(name string) string {
	var code strings.Builder
	for line := range strings.Lines(s.Source(name)) {
		if !strings.HasPrefix(line, "--") {
			code.WriteString(line)
		}
	}
	text := strings.TrimSpace(code.String())
	s.Loaded[name] = s.list(name, nil, redis.NewScript(text))
	return text
}

// partsOfFunction is how many parts of a script share a function.
const partsOfFunction = 3

// joined returns the text of a script: the prelude, the parts, and the rest, in functions
// within each other. Where a function refers to a local variable of the one around it, Lua
// searches a list of all variables of that function to which others refer; docs/scripts.md
// has what shorter lists save.
func (s *Set) joined(parts []string, rest string) string {
	text, open, declaring := Prelude(), 0, 0
	for _, name := range parts {
		part := s.part(name)
		if declares.MatchString(part) { // otherwise it adds nothing to the list
			if declaring%partsOfFunction == 0 {
				text, open = text+inner, open+1
			}
			declaring++
		}
		text += part
	}
	return text + inner + rest + strings.Repeat("\nend)()\n", open+1)
}

// declares matches a part that has variables for what follows it.
var declares = regexp.MustCompile(`(?m)^local `)

// inner begins the function that has the rest of a script.
const inner = "\nreturn (function()\n"

// part returns the text of a part of this package, or of one of the others.
func (s *Set) part(name string) string {
	for _, files := range s.others {
		if _, err := files.ReadFile("lua/" + name + ".lua"); err == nil {
			return positions(name, sourceOf(files, name))
		}
	}
	s.Parts[name] = true
	return s.Source(name)
}

// Source returns the text of a file, with positions in place of the names of its keys
// and arguments.
func (s *Set) Source(name string) string { return positions(name, sourceOf(s.Files, name)) }

// sourceOf reads a file of a package or, if it has none of that name, a shared part.
func sourceOf(files embed.FS, name string) string {
	text, err := files.ReadFile("lua/" + name + ".lua")
	if errors.Is(err, fs.ErrNotExist) {
		text, err = shared.ReadFile("lua/" + name + ".lua")
	}
	if err != nil {
		panic(fmt.Sprintf("redisops: script %s: %v", name, err))
	}
	return string(text)
}
