package redisops

import (
	"embed"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// set is the scripts of one package, files of its folder lua.
type set struct {
	files  embed.FS
	loaded map[string]*redis.Script // by the names of their files
	parts  map[string]bool          // files that are parts of scripts
}

// newSet gives the scripts of a package that has embedded its folder lua.
func newSet(files embed.FS) *set {
	return &set{files: files, loaded: map[string]*redis.Script{}, parts: map[string]bool{}}
}

// load reads a script, which begins with the prelude and with parts; a file that
// is missing is a fault of the build.
func (s *set) load(name string, parts ...string) *redis.Script {
	script := redis.NewScript(s.begin(parts) + s.source(name))
	s.loaded[name] = script
	return script
}

// within is a script that another runs as its function work: keyed.lua and
// beat_once.lua keep its answer, and do not run it twice.
func (s *set) within(around, name string, parts ...string) *redis.Script {
	s.parts[around] = true
	return redis.NewScript(s.begin(parts) + "local function work()\n" + s.source(name) + "end\n" + s.source(around))
}

// bare is a script without the prelude and its own comments. It is sent as a whole
// with each call, so it has to be short.
func (s *set) bare(name string) string {
	var code strings.Builder
	for line := range strings.Lines(s.source(name)) {
		if !strings.HasPrefix(line, "--") {
			code.WriteString(line)
		}
	}
	text := strings.TrimSpace(code.String())
	s.loaded[name] = redis.NewScript(text)
	return text
}

func (s *set) begin(parts []string) string {
	text := prelude()
	for _, name := range parts {
		s.parts[name] = true
		text += s.source(name)
	}
	return text
}

// source is the text of a file.
func (s *set) source(name string) string { return source(s.files, name) }

func source(files embed.FS, name string) string {
	text, err := files.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(fmt.Sprintf("redisops: %v", err))
	}
	return string(text)
}
