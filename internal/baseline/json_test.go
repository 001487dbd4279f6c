package baseline

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"reflect"
	"strings"
	"testing"
)

// The fields of the JSON that commands print. Their values are compared in
// cmd/wakebell/testdata.
//
//nolint:paralleltest // see TestGoAPI
func TestJSONOfCommands(t *testing.T) {
	p := load(t)
	var lines []string
	for path := range p.compiled {
		if !strings.HasPrefix(path, module+"/cmd/wakebell") {
			continue
		}
		files, info := p.check(t, path)
		for _, file := range files {
			eachStruct(file, func(name string, of *ast.StructType) {
				if fields, ok := info.Types[of].Type.(*types.Struct); ok {
					lines = append(lines, jsonOf(strings.TrimPrefix(path, module+"/cmd/wakebell/internal/")+" "+name, fields)...)
				}
			})
		}
	}
	Require(t, "json.txt", lines)
}

// eachStruct calls fn for all struct types of a file, with the name of the function
// or type that has it.
func eachStruct(file *ast.File, fn func(name string, of *ast.StructType)) {
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			inside(decl, decl.Name.Name, fn)
		case *ast.GenDecl:
			if decl.Tok != token.TYPE {
				continue
			}
			for _, spec := range decl.Specs {
				inside(spec, spec.(*ast.TypeSpec).Name.Name, fn)
			}
		}
	}
}

func inside(node ast.Node, name string, fn func(string, *ast.StructType)) {
	ast.Inspect(node, func(n ast.Node) bool {
		if of, ok := n.(*ast.StructType); ok {
			fn(name, of)
		}
		return true
	})
}

// jsonOf lists the fields of a struct that have a name in JSON.
func jsonOf(name string, of *types.Struct) (lines []string) {
	for i := range of.NumFields() {
		tag, ok := reflect.StructTag(of.Tag(i)).Lookup("json")
		if !ok || tag == "-" {
			continue
		}
		kind := types.TypeString(of.Field(i).Type(), func(pkg *types.Package) string { return pkg.Name() })
		lines = append(lines, fmt.Sprintf("%s: %s %s", name, tag, kind))
	}
	return lines
}
