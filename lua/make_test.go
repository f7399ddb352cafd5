package lua

import (
	"errors"
	"strings"
	"testing"
)

// TestMakeOfBrokenParts: a part that is missing, or a port that does not charge, is an error.
func TestMakeOfBrokenParts(t *testing.T) {
	for _, broken := range []func(name string) ([]byte, error){
		func(name string) ([]byte, error) {
			if name == "write.lua" {
				return nil, errors.New("missing")
			}
			return parts.ReadFile(name)
		},
		func(name string) ([]byte, error) {
			text, err := parts.ReadFile(name)
			return []byte(strings.ReplaceAll(string(text), "take = function", "")), err
		},
	} {
		if _, err := Make(broken); err == nil {
			t.Error("a broken part made scripts")
		}
	}
}
