//go:build !race

package bounds

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

// provided are the names that Redis has, and what package scripts adds: work is a script
// that another is around, ARGV_NAMED a number.
var provided = strings.Fields(`redis cjson KEYS ARGV string table math ipairs pairs next select
	type tonumber tostring unpack pcall error assert setmetatable work ARGV_NAMED`)

// luaFile is a file of which scripts are composed.
type luaFile struct {
	names
	gives []string // as its header says
	takes []string // the same, of parts before it, beyond what they give
}

// composition is the files of a script in their order.
type composition struct {
	script string
	files  []string
}

// compositions returns all scripts that the stores have.
func compositions(t *testing.T) []composition {
	t.Helper()
	var all []composition
	for _, b := range scripts.All() {
		store, name, _ := strings.Cut(b.Name, "/")
		c := composition{script: b.Name + " " + strings.Join(b.Parts, " "), files: []string{pathOf(t, store, "prelude")}}
		for _, part := range b.Parts {
			c.files = append(c.files, pathOf(t, store, part))
		}
		around, within, wrapped := strings.Cut(name, " ")
		if !wrapped {
			c.files = append(c.files, pathOf(t, store, name))
		} else {
			c.files = append(c.files, pathOf(t, store, within), pathOf(t, store, around))
		}
		all = append(all, c)
	}
	return all
}

// pathOf returns the file of a part: of the store, or one that stores share.
func pathOf(t *testing.T, store, name string) string {
	t.Helper()
	for _, folder := range []string{store, "internal/" + store, "timers", "internal/scripts"} {
		path := filepath.Join("..", "..", filepath.FromSlash(folder), "lua", name+".lua")
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	require.FailNow(t, "no file", "%s/%s", store, name)
	return ""
}

// givesOf returns the names that the header of a part has: in its line "-- Gives:", and in
// the lines after it that are indented.
func givesOf(text string) (gives []string) { return listed(text, "-- Gives:") }

func listed(text, line string) (names []string) {
	_, after, _ := strings.Cut(text, line)
	for line := range strings.Lines(after) {
		words, more := strings.CutPrefix(line, "--   ")
		if names != nil && !more {
			break
		}
		names = append(names, strings.Fields(words)...)
	}
	return names
}

// TestPartsGiveWhatTheirHeadersSay checks that every name that a script uses is given by
// Redis, by the prelude, or by a part before, and that the headers of parts say exactly
// which names the files after them use. A part whose text must not change gives no more: what
// another uses of it nevertheless, the header of that one has in its line "-- Takes:".
func TestPartsGiveWhatTheirHeadersSay(t *testing.T) {
	t.Parallel()
	files, used := map[string]luaFile{}, map[string]map[string]bool{}
	for _, c := range compositions(t) {
		have := map[string]string{} // the file that gives a name
		for _, name := range provided {
			have[name] = "Redis"
		}
		for _, path := range c.files {
			file, ok := files[path]
			if !ok {
				text, err := os.ReadFile(path)
				require.NoError(t, err)
				file = luaFile{namesOf(t, path, string(text)), givesOf(string(text)), listed(string(text), "-- Takes:")}
				files[path], used[path] = file, map[string]bool{}
			}
			for _, name := range slices.Sorted(maps.Keys(file.free)) {
				from := have[name]
				require.NotEmpty(t, from, "%s: %s uses %q, which nothing before it gives", c.script, path, name)
				if from != "Redis" && !slices.Contains(file.takes, name) {
					used[from][name] = true
				}
			}
			for name := range file.local {
				have[name] = path
			}
		}
	}
	for path, file := range files {
		if strings.HasSuffix(path, "prelude.lua") {
			continue // it describes each of its functions, and every script has them
		}
		require.Equal(t, slices.Sorted(maps.Keys(used[path])), slices.Sorted(slices.Values(file.gives)), "-- Gives: of %s", path)
	}
}
