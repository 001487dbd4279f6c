package wakebell_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// publicPackages are the packages that users import.
var publicPackages = []string{
	".", "gate", "messages", "messages/exchange", "messages/gate", "messages/rpc", "queue", "recurring", "reminder", "remote", "remote/rights",
	"wakebelltest", "wakebelltype",
}

// TestPublicTypesAreDeclared checks that no public type is an alias, because go doc
// shows no fields or methods of one.
func TestPublicTypesAreDeclared(t *testing.T) {
	t.Parallel()
	for _, dir := range publicPackages {
		files := token.NewFileSet()
		notATest := func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }
		packages, err := parser.ParseDir(files, filepath.FromSlash(dir), notATest, parser.SkipObjectResolution|parser.ParseComments)
		require.NoError(t, err)
		require.NotEmpty(t, packages, dir)
		for _, p := range packages {
			for name, file := range p.Files {
				for _, spec := range aliases(file) {
					if !ast.IsGenerated(file) && spec.Name.IsExported() {
						t.Errorf("%s: %s is an alias; declare the type", name, spec.Name)
					}
				}
			}
		}
	}
}

// aliases returns the declarations "type A = B" of a file.
func aliases(file *ast.File) (found []*ast.TypeSpec) {
	for _, d := range file.Decls {
		general, is := d.(*ast.GenDecl)
		if !is {
			continue
		}
		for _, s := range general.Specs {
			if spec, is := s.(*ast.TypeSpec); is && spec.Assign.IsValid() {
				found = append(found, spec)
			}
		}
	}
	return found
}
