package simredis

import (
	"crypto/sha1" // the digest by which Redis names scripts
	"encoding/hex"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// run is a script that runs.
type run struct {
	began int64 // the time on the clock, which stands still for expiries
	full  bool  // there was no memory when it began
	dirty bool  // it has written

	emptied map[string]bool // the keys that are gone because it took out all that was in them
}

// touches notes which keys a command of a script touches.
func (s *Server) touches(keys []string) {
	for _, key := range keys {
		if s.running.emptied[key] && s.Touched != nil {
			s.Touched(key)
		}
	}
}

// empties carries out a command that writes a key, and notes whether the key is gone because nothing is left in it.
func (s *Server) empties(c *command, key string, args []string) any {
	there := s.find(key) != nil
	reply := c.do(s, args[1:])
	if there && s.find(key) == nil {
		if s.running.emptied == nil {
			s.running.emptied = make(map[string]bool)
		}
		s.running.emptied[key] = true
	}
	return reply
}

func (s *Server) eval(args []string) any {
	sum := sha1.Sum([]byte(args[0])) // as above
	digest := hex.EncodeToString(sum[:])
	s.scripts[digest] = args[0]
	return s.script(digest, args)
}

func (s *Server) evalsha(args []string) any {
	digest := strings.ToLower(args[0])
	if _, known := s.scripts[digest]; !known {
		return failed("NOSCRIPT No matching script. Please use EVAL.")
	}
	return s.script(digest, args)
}

func (s *Server) script(digest string, args []string) any {
	n := number(args[1])
	proto, err := compiled(digest, s.scripts[digest])
	if err != nil {
		return failed("ERR Error compiling script (new function): " + err.Error())
	}
	s.running = &run{began: s.Now(), full: s.Full}
	defer func() { s.running = nil }()
	i := interpreters.Get().(*interpreter)
	defer interpreters.Put(i)
	return i.run(s, proto, digest, args[2:2+n], args[2+n:])
}

var protos sync.Map // by digest

func compiled(digest, text string) (*lua.FunctionProto, error) {
	if p, ok := protos.Load(digest); ok {
		return p.(*lua.FunctionProto), nil
	}
	chunk, err := parse.Parse(strings.NewReader(text), "user_script")
	if err != nil {
		return nil, err
	}
	assignApart(chunk)
	p, err := lua.Compile(chunk, "user_script")
	if err == nil {
		protos.Store(digest, p)
	}
	return p, err
}

// interpreter runs scripts of one server after the other.
type interpreter struct {
	*lua.LState
	server *Server
	raised *lua.LTable // the last error that a command raised
	line   int         // where
}

var interpreters = sync.Pool{New: func() any { return newInterpreter() }}

func newInterpreter() *interpreter {
	i := &interpreter{LState: lua.NewState(lua.Options{SkipOpenLibs: true})}
	for _, open := range []lua.LGFunction{lua.OpenBase, lua.OpenTable, lua.OpenString, lua.OpenMath} {
		i.Push(i.NewFunction(open))
		i.Call(0, 0)
	}
	library := func(functions map[string]lua.LGFunction) *lua.LTable { return i.SetFuncs(i.NewTable(), functions) }
	i.SetGlobal("redis", library(map[string]lua.LGFunction{
		"call":        func(*lua.LState) int { return i.command(true) },
		"pcall":       func(*lua.LState) int { return i.command(false) },
		"error_reply": func(*lua.LState) int { i.Push(i.failure(i.CheckString(1))); return 1 },
	}))
	i.SetGlobal("struct", library(map[string]lua.LGFunction{"pack": pack, "unpack": unpack}))
	i.SetGlobal("cmsgpack", library(map[string]lua.LGFunction{"unpack_limit": unpackLimit}))
	return i
}

func (i *interpreter) list(all []string) *lua.LTable {
	t := i.CreateTable(len(all), 0)
	for _, text := range all {
		t.Append(lua.LString(text))
	}
	return t
}

func (i *interpreter) run(s *Server, p *lua.FunctionProto, digest string, keys, args []string) any {
	i.server, i.raised, i.line = s, nil, 0
	i.SetGlobal("KEYS", i.list(keys))
	i.SetGlobal("ARGV", i.list(args))
	i.Push(i.NewFunctionFromProto(p))
	err := i.PCall(0, 1, nil)
	if err == nil {
		result := i.Get(-1)
		i.Pop(1)
		return replied(result)
	}
	text, line := i.why(err)
	return failed(fmt.Sprintf("%s script: %s, on @user_script:%d.", text, digest, line))
}

// why takes an error that left a script apart.
func (i *interpreter) why(err error) (text string, line int) {
	raised, ok := err.(*lua.ApiError)
	if !ok {
		panic(err)
	}
	if t, ok := raised.Object.(*lua.LTable); ok {
		if t == i.raised {
			line = i.line
		}
		return t.RawGetString("err").String(), line
	}
	text = raised.Object.String()
	if place, ok := strings.CutPrefix(text, "user_script:"); ok {
		number, _, _ := strings.Cut(place, ":")
		line, _ = strconv.Atoi(number)
	}
	return "ERR " + text, line
}

func (i *interpreter) failure(text string) *lua.LTable {
	t := i.NewTable()
	t.RawSetString("err", lua.LString(text))
	return t
}

// command is redis.call, or redis.pcall, which returns the errors that the other raises.
func (i *interpreter) command(raise bool) int {
	reply, err := i.carryOut()
	if err == "" {
		i.Push(i.value(reply))
		return 1
	}
	t := i.failure(string(err))
	if raise {
		i.raised, i.line = t, 0
		if caller, ok := i.GetStack(1); ok {
			_, _ = i.GetInfo("l", caller, lua.LNil)
			i.line = caller.CurrentLine
		}
		i.Error(t, 1)
	}
	i.Push(t)
	return 1
}

// carryOut carries out the command of a script.
func (i *interpreter) carryOut() (reply any, err failed) {
	args := make([]string, i.GetTop())
	for n := range args {
		switch v := i.Get(n + 1).(type) {
		case lua.LString:
			args[n] = string(v)
		case lua.LNumber:
			args[n] = precise(float64(v))
		default:
			return nil, "ERR Lua redis lib command arguments must be strings or integers"
		}
	}
	s, name := i.server, strings.ToUpper(args[0])
	c, known := commands[name]
	switch {
	case !known || !c.inScript:
		return nil, "ERR Unknown Redis command called from script"
	case s.Forbidden[name]:
		return nil, "ERR The user executing the script can't run this command or subcommand"
	}
	if r := s.refusesWrite(&c, s.running.dirty, s.running.full); r != "" {
		return nil, r
	}
	s.running.dirty = s.running.dirty || c.write
	keys := keysOf(name, args)
	s.touches(keys)
	if r := s.elsewhere(keys); r != "" {
		return nil, inScript(r)
	}
	if c.write && name != "DEL" {
		reply = s.empties(&c, keys[0], args)
	} else {
		reply = c.do(s, args[1:])
	}
	err, _ = reply.(failed)
	return reply, err
}

// value is a reply as a script sees it.
func (i *interpreter) value(reply any) lua.LValue {
	switch r := reply.(type) {
	case nil:
		return lua.LFalse
	case string:
		return lua.LString(r)
	case int64:
		return lua.LNumber(r)
	case status:
		t := i.NewTable()
		t.RawSetString("ok", lua.LString(r))
		return t
	case failed:
		return i.failure(string(r))
	case []any:
		t := i.CreateTable(len(r), 0)
		for n, element := range r {
			t.RawSetInt(n+1, i.value(element))
		}
		return t
	}
	panic(fmt.Sprintf("no reply: %T", reply))
}

// replied is what a script has returned, as a reply.
func replied(v lua.LValue) any {
	switch v := v.(type) {
	case lua.LString:
		return string(v)
	case lua.LNumber:
		return int64(v)
	case lua.LBool:
		if v {
			return int64(1)
		}
	case *lua.LTable:
		if err, ok := v.RawGetString("err").(lua.LString); ok {
			return failed(err)
		}
		if ok, is := v.RawGetString("ok").(lua.LString); is {
			return status(ok)
		}
		all := []any{}
		for n := 1; v.RawGetInt(n) != lua.LNil; n++ {
			all = append(all, replied(v.RawGetInt(n)))
		}
		return all
	}
	return nil
}

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
