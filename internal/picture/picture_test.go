package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// drawn returns the pictures.
func drawn(t *testing.T) map[string]string {
	t.Helper()
	all, err := pictures()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestPicturesAreCurrent: the pictures in the docs show what the algorithms do now.
func TestPicturesAreCurrent(t *testing.T) {
	for name, picture := range drawn(t) {
		committed, err := os.ReadFile(filepath.Join("../../docs", name))
		if err != nil {
			t.Fatal(err)
		}
		if string(committed) != picture {
			t.Errorf("docs/%s is out of date: run make pictures", name)
		}
	}
}

// TestPicturesAreSelfContained: each picture is well-formed, small, has a text for people who do not see it
// and colors for dark backgrounds, and needs nothing from elsewhere.
func TestPicturesAreSelfContained(t *testing.T) {
	foreign := regexp.MustCompile(`<script|<image|<foreignObject|href|@import|@font-face|url\(|https?://`)
	for name, picture := range drawn(t) {
		if len(picture) > 60_000 {
			t.Errorf("%s has %d bytes", name, len(picture))
		}
		if found := foreign.FindString(strings.Replace(picture, `xmlns="http://www.w3.org/2000/svg"`, "", 1)); found != "" {
			t.Errorf("%s has %q", name, found)
		}
		if !strings.Contains(picture, `aria-label="`) || !strings.Contains(picture, "prefers-color-scheme:dark") {
			t.Errorf("%s has no label, or no colors for dark backgrounds", name)
		}
		tokens := xml.NewDecoder(strings.NewReader(picture))
		for {
			if _, err := tokens.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Errorf("%s: %v", name, err)
				break
			}
		}
	}
}

// TestPlan: the plan shows each panel of the dashboard once, and each title fits into its box.
func TestPlan(t *testing.T) {
	d, err := plan()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct{ Panels []panel }
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	shown := make(map[string]int)
	for _, b := range d.boxes {
		shown[strings.ReplaceAll(b.title, "\n", " ")]++
		for line := range strings.SplitSeq(b.title, "\n") {
			if wide := letter * len(line); wide > b.w {
				t.Errorf("%q may be %d wide, its box is %d", line, wide, b.w)
			}
		}
	}
	for _, n := range d.notes[1:] {
		shown[n.text]++
	}
	for _, p := range dashboard.Panels {
		if shown[p.Title] != 1 {
			t.Errorf("%q is shown %d times", p.Title, shown[p.Title])
		}
		delete(shown, p.Title)
	}
	if len(shown) > 0 || len(dashboard.Panels) < 20 {
		t.Errorf("%d panels; not in the dashboard: %v", len(dashboard.Panels), shown)
	}
}

// TestTerminal: each line of the recording is in the picture, fits into it, and colors end where they ended.
func TestTerminal(t *testing.T) {
	tags, colors := regexp.MustCompile(`<[^>]*>`), regexp.MustCompile("\x1b\\[\\d+m")
	shown := "\n" + strings.ReplaceAll(tags.ReplaceAllString(terminal(recording), ""), "\n\n", "\n")
	commands := 0
	for line := range strings.Lines(recording) {
		if strings.HasPrefix(line, "$ ") {
			commands++
		}
		line = colors.ReplaceAllString(line, "")
		if len(line) > columns || !strings.Contains(shown, "\n"+line) {
			t.Errorf("not in the picture, or longer than %d columns: %s", columns, line)
		}
	}
	if commands < 3 {
		t.Errorf("%d commands", commands)
	}
	if got := spans("a \x1b[31mb<\x1b[0m c"); got != `a <tspan class="red">b&lt;</tspan> c` {
		t.Error(got)
	}
}
