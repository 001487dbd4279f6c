package surface_test

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/stacktest"
)

// TestEveryExportedNameIsInExample fails for functions, methods and types that
// no Example uses, neither by name nor by a value.
func TestEveryExportedNameIsInExample(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{".", "connection", "dashboard", "gate", "outbox", "payload", "queue", "recurring", "reminder"} {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			pkg, shown := examples(t, dir)
			var missing []string
			for _, name := range exported(pkg) {
				if !shown[name] {
					missing = append(missing, name)
				}
			}
			require.Empty(t, missing, "exported, and in no Example")
		})
	}
}

var testFunction = regexp.MustCompile(`^(Test|Fuzz|Benchmark)[A-Z]`)

// exported are the functions and types of a package, and the methods, as
// "Type.Method".
func exported(pkg *types.Package) (names []string) {
	for _, name := range pkg.Scope().Names() {
		obj := pkg.Scope().Lookup(name)
		if !obj.Exported() || testFunction.MatchString(name) { // the package may be compiled with its tests
			continue
		}
		switch obj := obj.(type) {
		case *types.Func:
			if !onlyForThisModule(obj) {
				names = append(names, name)
			}
		case *types.TypeName:
			names = append(names, name)
			if obj.IsAlias() {
				continue // the aliased type has its own documentation
			}
			for m := range obj.Type().(*types.Named).Methods() {
				if m.Exported() {
					names = append(names, name+"."+m.Name())
				}
			}
		}
	}
	return names
}

// onlyForThisModule reports whether users cannot call a function, because they cannot name
// the type of an argument.
func onlyForThisModule(f *types.Func) bool {
	for p := range f.Signature().Params().Variables() {
		named, is := types.Unalias(p.Type()).(*types.Named)
		if is && named.Obj().Pkg() != nil && strings.Contains(named.Obj().Pkg().Path(), "/internal/") {
			return true
		}
	}
	return false
}

// examples type-checks the tests of the package in dir. It returns the package and
// the names of the package that its example files use.
func examples(t *testing.T, dir string) (pkg *types.Package, shown map[string]bool) {
	t.Helper()
	importPath := path.Join("github.com/wakebell/wakebell", dir)
	fset := token.NewFileSet()
	names, err := filepath.Glob(filepath.Join(stacktest.Root, dir, "*_test.go"))
	require.NoError(t, err)
	var files []*ast.File
	for _, name := range names {
		file, err := parser.ParseFile(fset, name, nil, 0)
		require.NoError(t, err)
		if strings.HasSuffix(file.Name.Name, "_test") {
			files = append(files, file)
		}
	}
	imports := importer.ForCompiler(fset, "gc", compiled(t, dir))
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	_, err = (&types.Config{Importer: imports}).Check(importPath+"_test", fset, files, info)
	require.NoError(t, err)
	pkg, err = imports.Import(importPath)
	require.NoError(t, err)

	shown = map[string]bool{}
	named := namedBy(pkg)
	inExample := func(pos token.Pos) bool {
		return strings.HasPrefix(filepath.Base(fset.Position(pos).Filename), "example")
	}
	for ident, obj := range info.Uses {
		if inExample(ident.Pos()) && obj.Pkg() == pkg {
			shown[nameOf(obj)] = true
		}
	}
	for expr, tv := range info.Types {
		if inExample(expr.Pos()) {
			for _, obj := range typesIn(tv.Type) {
				shown[named[obj]] = true
			}
		}
	}
	return pkg, shown
}

// nameOf returns "Type.Method" of a method, and the plain name of other objects.
func nameOf(obj types.Object) string {
	fn, ok := obj.(*types.Func)
	if !ok || fn.Signature().Recv() == nil {
		return obj.Name()
	}
	receiver := fn.Signature().Recv().Type()
	if pointer, ok := receiver.(*types.Pointer); ok {
		receiver = pointer.Elem()
	}
	return receiver.(*types.Named).Obj().Name() + "." + fn.Name()
}

// namedBy returns the names that a package has for types: its own and its aliases.
func namedBy(pkg *types.Package) map[*types.TypeName]string {
	names := map[*types.TypeName]string{}
	for _, name := range pkg.Scope().Names() {
		if obj, ok := pkg.Scope().Lookup(name).(*types.TypeName); ok {
			for _, is := range typesIn(obj.Type()) {
				names[is] = name
			}
		}
	}
	return names
}

// typesIn returns the declared types that a type consists of.
func typesIn(of types.Type) (found []*types.TypeName) {
	switch of := types.Unalias(of).(type) {
	case *types.Named:
		return []*types.TypeName{of.Obj()}
	case *types.Pointer:
		return typesIn(of.Elem())
	case *types.Slice:
		return typesIn(of.Elem())
	case *types.Map:
		return slices.Concat(typesIn(of.Key()), typesIn(of.Elem()))
	case *types.Tuple:
		for v := range of.Variables() {
			found = append(found, typesIn(v.Type())...)
		}
	}
	return found
}

// compiled finds the compiled form of the imports of the tests.
func compiled(t *testing.T, dir string) importer.Lookup {
	t.Helper()
	const form = "{{if .Export}}{{.ImportPath}}={{.Export}}{{end}}"
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-test", "-f", form, "./"+dir)
	cmd.Dir = stacktest.Root
	out, err := cmd.Output()
	require.NoError(t, err)
	paths := map[string]string{}
	for line := range strings.Lines(string(out)) {
		of, file, _ := strings.Cut(strings.TrimSpace(line), "=")
		of, _, _ = strings.Cut(of, " ") // the variant that is compiled for a test of its dependency
		paths[of] = file
	}
	return func(of string) (io.ReadCloser, error) { return os.Open(paths[of]) }
}
