//go:build !race

package bounds

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// names are the names of a Lua file that other files may share.
type names struct {
	local map[string]bool // local variables of the file itself, outside of functions and blocks
	free  map[string]bool // that the file uses and does not declare
}

// namesOf parses a Lua file.
func namesOf(t testing.TB, name, text string) names {
	t.Helper()
	file, err := parse.Parse(strings.NewReader(text), name)
	require.NoError(t, err)
	n := names{local: map[string]bool{}, free: map[string]bool{}}
	n.block(file, scope{n.local})
	return n
}

// scope has the local variables of a block and of those around it, innermost last.
type scope []map[string]bool

func (s scope) has(name string) bool {
	for _, vars := range s {
		if vars[name] {
			return true
		}
	}
	return false
}

func (s scope) declare(names ...string) {
	for _, name := range names {
		s[len(s)-1][name] = true
	}
}

// within returns the scope of a block with variables of its own.
func (s scope) within(names ...string) scope {
	inner := append(s[:len(s):len(s)], map[string]bool{})
	inner.declare(names...)
	return inner
}

func (n names) block(all []ast.Stmt, s scope) {
	for _, stmt := range all {
		n.statement(stmt, s)
	}
}

func (n names) statement(stmt ast.Stmt, s scope) {
	switch stmt := stmt.(type) {
	case *ast.LocalAssignStmt:
		if function, ok := only(stmt.Exprs).(*ast.FunctionExpr); ok {
			s.declare(stmt.Names...) // a local function may call itself
			n.expression(function, s)
			return
		}
		n.expressions(stmt.Exprs, s)
		s.declare(stmt.Names...)
	case *ast.AssignStmt:
		n.expressions(stmt.Lhs, s)
		n.expressions(stmt.Rhs, s)
	case *ast.FuncCallStmt:
		n.expression(stmt.Expr, s)
	case *ast.DoBlockStmt:
		n.block(stmt.Stmts, s.within())
	case *ast.WhileStmt:
		n.expression(stmt.Condition, s)
		n.block(stmt.Stmts, s.within())
	case *ast.RepeatStmt:
		inner := s.within()
		n.block(stmt.Stmts, inner)
		n.expression(stmt.Condition, inner)
	case *ast.IfStmt:
		n.expression(stmt.Condition, s)
		n.block(stmt.Then, s.within())
		n.block(stmt.Else, s.within())
	case *ast.NumberForStmt:
		n.expressions([]ast.Expr{stmt.Init, stmt.Limit, stmt.Step}, s)
		n.block(stmt.Stmts, s.within(stmt.Name))
	case *ast.GenericForStmt:
		n.expressions(stmt.Exprs, s)
		n.block(stmt.Stmts, s.within(stmt.Names...))
	case *ast.FuncDefStmt:
		n.expression(stmt.Name.Func, s)
		n.expression(stmt.Name.Receiver, s)
		n.expression(stmt.Func, s)
	case *ast.ReturnStmt:
		n.expressions(stmt.Exprs, s)
	}
}

func only(all []ast.Expr) ast.Expr {
	if len(all) == 1 {
		return all[0]
	}
	return nil
}

func (n names) expressions(all []ast.Expr, s scope) {
	for _, e := range all {
		n.expression(e, s)
	}
}

// expression notes the free names of an expression, by the fields of its node.
func (n names) expression(e ast.Expr, s scope) {
	switch e := e.(type) {
	case nil:
	case *ast.IdentExpr:
		if !s.has(e.Value) {
			n.free[e.Value] = true
		}
	case *ast.FunctionExpr:
		n.block(e.Stmts, s.within(e.ParList.Names...))
	case *ast.TableExpr:
		for _, field := range e.Fields {
			n.expressions([]ast.Expr{field.Key, field.Value}, s)
		}
	default:
		node := reflect.ValueOf(e).Elem()
		for i := range node.NumField() {
			switch part := node.Field(i).Interface().(type) {
			case ast.Expr:
				n.expression(part, s)
			case []ast.Expr:
				n.expressions(part, s)
			}
		}
	}
}

func TestNamesOf(t *testing.T) {
	t.Parallel()
	n := namesOf(t, "x", `
local a, b = c, {d = e, [f] = 1}
local function g(h) return g(h, i) end
function b.j(k) local l = l0; return k + l end
for m, o in pairs(a) do local p = m .. o .. p end
repeat local q = 1 until q
if not r then s = #a else local t = -u end`)
	require.Equal(t, map[string]bool{"a": true, "b": true, "g": true}, n.local)
	free := []string{"c", "e", "f", "i", "l0", "pairs", "p", "r", "s", "u"}
	require.Len(t, n.free, len(free))
	for _, name := range free {
		require.True(t, n.free[name], name)
	}
}
