package simredis

import (
	"fmt"
	"reflect"

	"github.com/yuin/gopher-lua/ast"
)

// assignApart changes assignments that gopher-lua gets wrong. It computes "a, b = b, a" as if it were "a = b; b = a",
// and of "a = a and not b and c" it may leave a as it is. Each becomes a block, which first keeps what is to be assigned.
func assignApart(statements []ast.Stmt) { walk(reflect.ValueOf(statements)) }

func walk(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			walk(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				walk(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			walk(v.Index(i))
			if s, ok := v.Index(i).Interface().(*ast.AssignStmt); ok && (len(s.Lhs) > 1 || isLogical(s.Rhs[0])) {
				v.Index(i).Set(reflect.ValueOf(block(s)))
			}
		}
	}
}

func isLogical(e ast.Expr) bool {
	_, is := e.(*ast.LogicalOpExpr)
	return is
}

func block(s *ast.AssignStmt) ast.Stmt {
	kept := &ast.LocalAssignStmt{Exprs: s.Rhs}
	kept.SetLine(s.Line())
	all := []ast.Stmt{kept}
	for i, to := range s.Lhs {
		name := &ast.IdentExpr{Value: fmt.Sprintf("kept %d", i)} // no name in a script has a space
		name.SetLine(s.Line())
		kept.Names = append(kept.Names, name.Value)
		one := &ast.AssignStmt{Lhs: []ast.Expr{to}, Rhs: []ast.Expr{name}}
		one.SetLine(s.Line())
		all = append(all, one)
	}
	b := &ast.DoBlockStmt{Stmts: all}
	b.SetLine(s.Line())
	b.SetLastLine(s.LastLine())
	return b
}
