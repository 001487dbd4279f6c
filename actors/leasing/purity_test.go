package leasing

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pureImports are what the core may import of the standard library, and of time the names that
// are no clock. Of observe they are what needs no goroutine.
var (
	pureImports = []string{"cmp", "errors", "fmt", "math", "slices", "time"}
	pureObserve = []string{"Counters", "MinClockStep", "MaxClockDrift"}
	pureTime    = []string{"Duration", "Time", "Nanosecond", "Microsecond", "Millisecond", "Second", "Minute", "Hour", "Unix"}
)

// TestCoreIsPure looks for what would make the core depend on more than its arguments:
// goroutines, channels, locks, clocks, timers, contexts, random sources and I/O. The linter
// (depguard) restricts the imports of this module.
func TestCoreIsPure(t *testing.T) {
	t.Parallel()
	for name, file := range sources(t) {
		for _, each := range file.Imports {
			path, err := strconv.Unquote(each.Path.Value)
			require.NoError(t, err)
			if !strings.HasPrefix(path, "github.com/wakebell/wakebell/") {
				require.Contains(t, pureImports, path, name)
			}
			require.Nil(t, each.Name, "%s: %s has another name, so that its use is not noticed", name, path)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt, *ast.ChanType, *ast.SelectStmt, *ast.SendStmt:
				require.Fail(t, "a goroutine or a channel", "%s: %T", name, n)
			case *ast.SelectorExpr:
				switch of, _ := n.X.(*ast.Ident); {
				case of == nil:
				case of.Name == "time":
					require.Contains(t, pureTime, n.Sel.Name, name)
				case of.Name == "observe":
					require.Contains(t, pureObserve, n.Sel.Name, name)
				}
			}
			return true
		})
	}
}

// TestPackageCommentNamesFiles checks that the package comment names files that exist.
func TestPackageCommentNamesFiles(t *testing.T) {
	t.Parallel()
	core, err := os.ReadFile("core.go")
	require.NoError(t, err)
	comment, _, _ := strings.Cut(string(core), "\npackage ")
	names := regexp.MustCompile(`\w+\.go\b`).FindAllString(comment, -1)
	require.NotEmpty(t, names)
	for _, name := range names {
		require.FileExists(t, name)
	}
}

// TestStructsStaySmall bounds the number of fields of each struct: one with more has too many
// concerns.
func TestStructsStaySmall(t *testing.T) {
	t.Parallel()
	const most = 28
	for name, file := range sources(t) {
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.StructType); ok {
				fields := 0
				for _, f := range s.Fields.List {
					fields += max(len(f.Names), 1)
				}
				require.LessOrEqual(t, fields, most, name)
			}
			return true
		})
	}
}

// sources returns the parsed files of the package, without its tests.
func sources(t *testing.T) map[string]*ast.File {
	t.Helper()
	names, err := filepath.Glob("*.go")
	require.NoError(t, err)
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	files := map[string]*ast.File{}
	for _, name := range names {
		files[name], err = parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
	}
	require.NotEmpty(t, files)
	return files
}
