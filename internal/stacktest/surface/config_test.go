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

// maxConfigFields bounds the fields of all public configurations together.
const maxConfigFields = 95

// TestNoFieldStandsInTwoConfigurations checks the exported fields of all public structs
// whose names end in Config: a setting that stood in two would have to be copied from one
// to the other. What is shared is a field of connection.Config.
func TestNoFieldStandsInTwoConfigurations(t *testing.T) {
	t.Parallel()
	where, count := map[string]string{}, 0
	for _, dir := range publicPackages {
		names, err := filepath.Glob(filepath.Join(stacktest.Root, filepath.FromSlash(dir), "*.go"))
		require.NoError(t, err)
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			ast.Inspect(file, func(n ast.Node) bool {
				spec, is := n.(*ast.TypeSpec)
				if !is || !spec.Name.IsExported() || !strings.HasSuffix(spec.Name.Name, "Config") {
					return true
				}
				fields, is := spec.Type.(*ast.StructType)
				require.True(t, is, "%s.%s is no struct", dir, spec.Name)
				owner := dir + "." + spec.Name.Name
				for _, f := range fields.Fields.List { // an embedded one has no name: it is the other struct's
					for _, field := range f.Names {
						if !field.IsExported() {
							continue
						}
						count++
						if other := where[field.Name]; other != "" {
							t.Errorf("%s stands in %s and in %s", field.Name, other, owner)
						}
						where[field.Name] = owner
					}
				}
				return true
			})
		}
	}
	require.Contains(t, where, "PayloadLimit")
	require.LessOrEqual(t, count, maxConfigFields)
	t.Logf("%d fields", count)
}
