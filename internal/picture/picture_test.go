package main

import (
	"os"
	"testing"
)

// TestPictureIsCurrent: the docs show what the algorithms do now.
func TestPictureIsCurrent(t *testing.T) {
	committed, err := os.ReadFile("../../docs/algorithms.svg")
	if err != nil {
		t.Fatal(err)
	}
	if string(committed) != draw(traffic(), lanes()) {
		t.Error("docs/algorithms.svg is not what the algorithms draw: run go generate ./internal/picture")
	}
}
