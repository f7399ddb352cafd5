package main

import (
	"os"
	"testing"
)

// TestPictureIsCurrent: the picture in the docs shows what the algorithms do now.
func TestPictureIsCurrent(t *testing.T) {
	committed, err := os.ReadFile("../../docs/algorithms.svg")
	if err != nil {
		t.Fatal(err)
	}
	if string(committed) != draw(traffic(), lanes()) {
		t.Error("docs/algorithms.svg is out of date: run go generate ./internal/picture")
	}
}
