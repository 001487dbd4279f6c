package baseline

import (
	"fmt"
	"go/types"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// public has the packages whose Go API is promised.
var public = []string{
	"", "connection", "dashboard", "embedded", "explain", "forecast", "gate", "messages", "outbox", "payload", "queue", "recurring", "reminder",
	"remote", "remote/rights", "wakebelltest", "wakebelltype", "webhook",
}

// TestGoAPI does not run beside TestJSONOfCommands, which would compile all packages again.
//
//nolint:paralleltest // see above
func TestGoAPI(t *testing.T) {
	p := load(t)
	for _, dir := range public {
		pkg, err := p.imports.Import(path.Join(module, dir))
		require.NoError(t, err)
		name := strings.ReplaceAll(dir, "/", "-")
		if name == "" {
			name = "wakebell"
		}
		Require(t, "api/"+name+".txt", apiOf(pkg))
	}
}

// apiOf lists what programs can use of a package, a line each.
func apiOf(pkg *types.Package) []string {
	l := listing{pkg: pkg}
	for _, name := range pkg.Scope().Names() {
		if obj := pkg.Scope().Lookup(name); obj.Exported() {
			l.object(obj)
		}
	}
	return l.lines
}

type listing struct {
	pkg   *types.Package
	lines []string
}

func (l *listing) add(format string, args ...any) {
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

func (l *listing) object(obj types.Object) {
	switch obj := obj.(type) {
	case *types.Const:
		l.add("const %s %s = %s", obj.Name(), l.text(obj.Type()), obj.Val().ExactString())
	case *types.Var:
		l.add("var %s %s", obj.Name(), l.text(obj.Type()))
	case *types.Func:
		l.add("func %s%s", obj.Name(), l.signature(obj.Signature()))
	case *types.TypeName:
		l.typeName(obj)
	}
}

func (l *listing) typeName(obj *types.TypeName) {
	named, ok := types.Unalias(obj.Type()).(*types.Named)
	if !ok || obj.IsAlias() {
		l.add("type %s = %s", obj.Name(), l.text(types.Unalias(obj.Type())))
	}
	if !ok || obj.IsAlias() && slices.Contains(public, strings.TrimPrefix(strings.TrimPrefix(named.Obj().Pkg().Path(), module), "/")) {
		return // listed where it is declared
	}
	if generated(named) {
		l.add("type %s message", obj.Name()) // its fields are in messages.txt
		return
	}
	name := obj.Name() + l.parameters(named.TypeParams())
	switch of := named.Underlying().(type) {
	case *types.Struct:
		l.add("type %s struct", name)
		for i := range of.NumFields() {
			if field := of.Field(i); field.Exported() {
				l.add("type %s struct, %s %s%s", name, field.Name(), l.text(field.Type()), tagOf(of.Tag(i)))
			}
		}
	case *types.Interface:
		l.interfaceMethods(name, of)
		return
	default:
		l.add("type %s %s", name, l.text(of))
	}
	l.methods(name, named)
}

func (l *listing) interfaceMethods(name string, of *types.Interface) {
	l.add("type %s interface", name)
	for method := range of.Methods() {
		if method.Exported() {
			l.add("type %s interface, %s%s", name, method.Name(), l.signature(method.Signature()))
		} else {
			l.add("type %s interface, unexported methods", name)
		}
	}
}

// methods lists the methods of a type, also those of embedded types.
func (l *listing) methods(name string, named *types.Named) {
	values := types.NewMethodSet(named)
	for selection := range types.NewMethodSet(types.NewPointer(named)).Methods() {
		method := selection.Obj().(*types.Func)
		if !method.Exported() {
			continue
		}
		receiver := "*" + name
		if values.Lookup(method.Pkg(), method.Name()) != nil {
			receiver = name
		}
		l.add("method (%s) %s%s", receiver, method.Name(), l.signature(selection.Type().(*types.Signature)))
	}
}

// generated reports whether a type is a message or an enumeration of a .proto file.
func generated(named *types.Named) bool {
	for _, of := range []types.Type{named, types.NewPointer(named)} {
		set := types.NewMethodSet(of)
		if set.Lookup(nil, "ProtoReflect") != nil || set.Lookup(nil, "EnumDescriptor") != nil {
			return true
		}
	}
	return false
}

// tagOf returns the name of a field in JSON.
func tagOf(tag string) string {
	if tag == "" {
		return ""
	}
	return " `" + tag + "`"
}

func (l *listing) text(of types.Type) string {
	return types.TypeString(unnamed(of), func(pkg *types.Package) string {
		if pkg == l.pkg {
			return ""
		}
		return strings.TrimPrefix(pkg.Path(), module+"/")
	})
}

func (l *listing) signature(of *types.Signature) string {
	return l.parameters(of.TypeParams()) + strings.TrimPrefix(l.text(of), "func")
}

func (l *listing) parameters(of *types.TypeParamList) string {
	if of.Len() == 0 {
		return ""
	}
	var all []string
	for parameter := range of.TypeParams() {
		all = append(all, parameter.Obj().Name()+" "+l.text(parameter.Constraint()))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// unnamed removes the names of parameters, which may change.
func unnamed(of types.Type) types.Type {
	switch of := of.(type) {
	case *types.Pointer:
		return types.NewPointer(unnamed(of.Elem()))
	case *types.Slice:
		return types.NewSlice(unnamed(of.Elem()))
	case *types.Map:
		return types.NewMap(of.Key(), unnamed(of.Elem()))
	case *types.Signature:
		return types.NewSignatureType(nil, nil, nil, unnamedTuple(of.Params()), unnamedTuple(of.Results()), of.Variadic())
	}
	return of
}

func unnamedTuple(of *types.Tuple) *types.Tuple {
	var all []*types.Var
	for v := range of.Variables() {
		all = append(all, types.NewVar(v.Pos(), v.Pkg(), "", unnamed(v.Type())))
	}
	return types.NewTuple(all...)
}
