package scripts

import (
	"embed"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Set is the scripts of one package, files of its folder lua.
type Set struct {
	Files  embed.FS                 // the folder lua
	Loaded map[string]*redis.Script // by the names of their files
	Parts  map[string]bool          // files that are parts of scripts
}

// NewSet gives the scripts of a package that has embedded its folder lua.
func NewSet(files embed.FS) *Set {
	return &Set{Files: files, Loaded: map[string]*redis.Script{}, Parts: map[string]bool{}}
}

// Load reads a script, which begins with the prelude and with parts; a file that
// is missing is a fault of the build.
func (s *Set) Load(name string, parts ...string) *redis.Script {
	script := redis.NewScript(s.begin(parts) + s.Source(name))
	s.Loaded[name] = script
	return script
}

// Within is a script that another runs as its function work: keyed.lua and
// once.lua keep its answer, and do not run it twice.
func (s *Set) Within(around, name string, parts ...string) *redis.Script {
	s.Parts[around] = true
	return redis.NewScript(s.begin(parts) + "local function work()\n" + s.Source(name) + "end\n" + s.Source(around))
}

// Bare is a script without the prelude and its own comments. It is sent as a whole
// with each call, so it has to be short.
func (s *Set) Bare(name string) string {
	var code strings.Builder
	for line := range strings.Lines(s.Source(name)) {
		if !strings.HasPrefix(line, "--") {
			code.WriteString(line)
		}
	}
	text := strings.TrimSpace(code.String())
	s.Loaded[name] = redis.NewScript(text)
	return text
}

func (s *Set) begin(parts []string) string {
	text := Prelude()
	for _, name := range parts {
		s.Parts[name] = true
		text += s.Source(name)
	}
	return text
}

// Source is the text of a file.
func (s *Set) Source(name string) string { return sourceOf(s.Files, name) }

func sourceOf(files embed.FS, name string) string {
	text, err := files.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(fmt.Sprintf("redisops: script %s: %v", name, err))
	}
	return string(text)
}
