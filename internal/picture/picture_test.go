package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestPicturesAreCurrent: the pictures in the docs show what the algorithms do now.
func TestPicturesAreCurrent(t *testing.T) {
	for name, picture := range pictures() {
		committed, err := os.ReadFile(filepath.Join("../../docs", name))
		if err != nil {
			t.Fatal(err)
		}
		if string(committed) != picture {
			t.Errorf("docs/%s is out of date: run go generate ./internal/picture", name)
		}
	}
}
