package routes

import (
	"reflect"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// TestForeignKinds: what a module of another package looks at is not known, also if it is no struct, as many matchers.
func TestForeignKinds(t *testing.T) {
	defer func(all []string) { known = all }(known)
	known = known[:1] // so that the modules below are of another package
	for _, module := range []any{list{"a"}, fields{"a": "b"}, text("a"), pass(nil)} {
		var s Routes
		s.value(reflect.ValueOf([]any{module}))
		if !s.observes {
			t.Errorf("%T is not seen as foreign", module)
		}
	}
}

type (
	list   []string
	fields map[string]string
	text   string
	pass   func()
)

func (list) CaddyModule() (info caddy.ModuleInfo)   { return info }
func (fields) CaddyModule() (info caddy.ModuleInfo) { return info }
func (text) CaddyModule() (info caddy.ModuleInfo)   { return info }
func (pass) CaddyModule() (info caddy.ModuleInfo)   { return info }
