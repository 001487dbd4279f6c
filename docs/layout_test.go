package docs_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	rootSources    = 26
	rootExamples   = 8
	packageSources = 28
	goLines        = 355
	luaLines       = 300
)

// longFiles are the files that may have more lines than their kind.
var longFiles = map[string]int{
	"redisops/queue/lua/exchange.lua":  402, // one exchange, whose steps share their locals: two parts more cost 3 to 9 % (BenchmarkQueueExchange)
	"redisops/timers/lua/exchange.lua": 330, // the same
	"redisops/timers/lua/due_keys.lua": 335, // one selection, whose steps share their locals
}

var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// TestPackagesAndFilesAreSmall keeps the bounds of packages and files in the number of
// files and lines.
func TestPackagesAndFilesAreSmall(t *testing.T) {
	t.Parallel()
	sources, examples := map[string]int{}, 0
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel("..", path)
		name = filepath.ToSlash(name)
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir():
			return nil
		case strings.HasSuffix(name, ".lua"):
			requireLines(t, name, luaLines)
		case strings.HasSuffix(name, "_test.go"):
			if !strings.Contains(name, "/") {
				require.True(t, strings.HasPrefix(name, "example"), "%s: the root folder has no test but examples", name)
				examples++
			}
		case strings.HasSuffix(name, ".go"):
			if requireLines(t, name, goLines) {
				sources[filepath.ToSlash(filepath.Dir(name))]++
			}
		}
		return nil
	}))
	require.LessOrEqual(t, sources["."], rootSources, "source files in the root folder")
	require.LessOrEqual(t, examples, rootExamples, "example files in the root folder")
	for folder, n := range sources {
		require.LessOrEqual(t, n, packageSources, "source files in %s", folder)
	}
}

// requireLines fails for a file that is too long. It returns false for generated code,
// which may have any length.
func requireLines(t *testing.T, name string, most int) bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", name))
	require.NoError(t, err)
	if generated.Match(text) {
		return false
	}
	require.LessOrEqual(t, bytes.Count(text, []byte("\n")), max(most, longFiles[name]), "lines in %s", name)
	return true
}
