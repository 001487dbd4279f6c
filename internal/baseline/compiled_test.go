package baseline

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
)

const module = "github.com/wakebell/wakebell"

// program has the compiled form of the packages of this module and their imports.
type program struct {
	fset     *token.FileSet
	imports  types.Importer
	compiled map[string]string   // import path → file
	files    map[string][]string // import path → names of its files in Go
}

func load(t *testing.T) program {
	t.Helper()
	const form = `{{if .Export}}{{.ImportPath}}={{.Export}}={{join .GoFiles " "}}{{end}}`
	args := []string{"list", "-export", "-deps", "-f", form, module + "/..."}
	if redistest.Raced { // the packages that this run of the tests has compiled, and not all of them again
		args = slices.Insert(args, 1, "-race")
	}
	list := exec.CommandContext(t.Context(), "go", args...)
	list.Stderr = os.Stderr
	out, err := list.Output()
	require.NoError(t, err)
	p := program{fset: token.NewFileSet(), compiled: map[string]string{}, files: map[string][]string{}}
	for line := range strings.Lines(string(out)) {
		path, rest, _ := strings.Cut(strings.TrimSpace(line), "=")
		file, names, _ := strings.Cut(rest, "=")
		p.compiled[path], p.files[path] = file, strings.Fields(names)
	}
	p.imports = importer.ForCompiler(p.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(p.compiled[path]) })
	return p
}

// check type-checks the files of a package of this module, without its tests.
func (p program) check(t *testing.T, path string) (files []*ast.File, info *types.Info) {
	t.Helper()
	dir := filepath.Join("..", "..", filepath.FromSlash(strings.TrimPrefix(path, module)))
	for _, name := range p.files[path] {
		file, err := parser.ParseFile(p.fset, filepath.Join(dir, name), nil, 0)
		require.NoError(t, err)
		files = append(files, file)
	}
	info = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	_, err := (&types.Config{Importer: p.imports}).Check(path, p.fset, files, info)
	require.NoError(t, err)
	return files, info
}
