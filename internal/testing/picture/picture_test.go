package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestPictureIsCurrent: the picture in the docs shows what the algorithms do now. It is well-formed and small, has a text for
// people who do not see it and colors for dark backgrounds, and needs nothing from elsewhere.
func TestPictureIsCurrent(t *testing.T) {
	picture := draw(traffic(), lanes())
	committed, err := os.ReadFile("../../../docs/algorithms.svg")
	if err != nil {
		t.Fatal(err)
	}
	if string(committed) != picture {
		t.Error("docs/algorithms.svg is out of date: run make pictures")
	}
	if len(picture) > 60_000 {
		t.Errorf("%d bytes", len(picture))
	}
	foreign := regexp.MustCompile(`<script|<image|<foreignObject|href|@import|@font-face|url\(|https?://`)
	if found := foreign.FindString(strings.Replace(picture, `xmlns="http://www.w3.org/2000/svg"`, "", 1)); found != "" {
		t.Errorf("it has %q", found)
	}
	if !strings.Contains(picture, `aria-label="`) || !strings.Contains(picture, "prefers-color-scheme:dark") {
		t.Error("no label, or no colors for dark backgrounds")
	}
	tokens := xml.NewDecoder(strings.NewReader(picture))
	for {
		if _, err := tokens.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
