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

// TestPicturesAreCurrent: the pictures in the docs show what the algorithms do now, and what was recorded last.
func TestPicturesAreCurrent(t *testing.T) {
	all, err := pictures()
	if err != nil {
		t.Fatal(err)
	}
	for name, picture := range all {
		committed, err := os.ReadFile("../../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if string(committed) != picture {
			t.Errorf("docs/%s is out of date: run make pictures", name)
		}
		isSelfContained(t, picture)
	}
}

// isSelfContained checks that a picture is well-formed, small, has a text for people who do not see it
// and colors for dark backgrounds, and needs nothing from elsewhere.
func isSelfContained(t *testing.T, picture string) {
	t.Helper()
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
