package surface_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/stacktest"
)

// publicPackages are the packages that users import.
var publicPackages = []string{
	".", "connection", "dashboard", "embedded", "gate", "messages", "messages/exchange", "messages/gate", "messages/rpc", "outbox", "payload", "queue", "recurring", "reminder", "remote", "remote/rights",
	"wakebelltest", "wakebelltype",
}

// TestPublicTypesAreDeclared checks that no public type is an alias, because go doc
// shows no fields or methods of one.
func TestPublicTypesAreDeclared(t *testing.T) {
	t.Parallel()
	for _, dir := range publicPackages {
		names, err := filepath.Glob(filepath.Join(stacktest.Root, filepath.FromSlash(dir), "*.go"))
		require.NoError(t, err)
		require.NotEmpty(t, names, dir)
		for _, name := range names {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution|parser.ParseComments)
			require.NoError(t, err)
			if strings.HasSuffix(name, "_test.go") || ast.IsGenerated(file) {
				continue
			}
			for _, spec := range aliases(file) {
				if spec.Name.IsExported() {
					t.Errorf("%s: %s is an alias; declare the type", name, spec.Name)
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
