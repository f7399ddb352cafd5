package simredis

import "testing"

// TestAssign: variables get what Lua in Redis gives them.
func TestAssign(t *testing.T) {
	t.Parallel()
	s := &Session{Server: New(func() int64 { return 0 })}
	for code, want := range map[string]string{
		"local a, b = 1, 2; a, b = b, a; return {a, b}":                                  "*2\r\n:2\r\n:1\r\n",
		"local a, b, c = 5, true, false; a = a and not b and not c; return tostring(a)":  "$5\r\nfalse\r\n",
		"local a, b, c = 5, false, false; a = a and not b and not c; return tostring(a)": "$4\r\ntrue\r\n",
		"local a, b = 5, true; a = a and not b or 7; return a":                           ":7\r\n",
		"local t = {a = 5, b = true}; t.a = t.a and not t.b and 3; return tostring(t.a)": "$5\r\nfalse\r\n",
		"local a, b = false, true; a = a or not b or 3; return a":                        ":3\r\n",
	} {
		if got := string(s.Do("EVAL", code, "0")); got != want {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
}
