package page

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// onGround are the colors of texts with the grounds that they are on, by the names of their variables.
var onGround = map[string][]string{
	"text":    {"card", "back", "code", "refused-soft"},
	"muted":   {"card", "back", "code"},
	"accent":  {"card", "back"},
	"refused": {"card", "refused-soft"},
	"good":    {"good-soft"},
	"warn":    {"warn-soft"},
	"dry":     {"dry-soft", "card"},
	"card":    {"accent", "refused", "text"}, // in buttons, for bans, in news
}

// TestContrast: texts have a contrast of at least 4.5 in both themes (WCAG AA), and curves one of 3.
func TestContrast(t *testing.T) {
	css, err := os.ReadFile("static/page.css")
	if err != nil {
		t.Fatal(err)
	}
	light, rest, _ := strings.Cut(string(css), "@media (prefers-color-scheme: dark)")
	dark, _, _ := strings.Cut(rest, "* { box-sizing")
	for theme, text := range map[string]string{"light": light, "dark": dark} {
		colors := colorsOf(text)
		if len(colors) < 15 {
			t.Fatalf("%s: only %d colors", theme, len(colors))
		}
		for text, grounds := range onGround {
			for _, ground := range grounds {
				if c := contrast(colors[text], colors[ground]); c < 4.5 {
					t.Errorf("%s: %s on %s has a contrast of %.2f", theme, text, ground, c)
				}
			}
		}
		for _, line := range []string{"accent", "refused", "warn"} {
			if c := contrast(colors[line], colors["card"]); c < 3 {
				t.Errorf("%s: curves of color %s have a contrast of %.2f", theme, line, c)
			}
		}
	}
	if c := contrast([3]float64{0, 0, 0}, [3]float64{255, 255, 255}); math.Abs(c-21) > 0.01 {
		t.Errorf("black on white has a contrast of %v, want 21", c)
	}
}

var variable = regexp.MustCompile(`--([a-z-]+): #([0-9a-f]{3,6})\b`)

func colorsOf(css string) map[string][3]float64 {
	colors := make(map[string][3]float64)
	for _, m := range variable.FindAllStringSubmatch(css, -1) {
		hex := m[2]
		if len(hex) == 3 {
			hex = fmt.Sprintf("%c%[1]c%c%[2]c%c%[3]c", hex[0], hex[1], hex[2])
		}
		n, _ := strconv.ParseUint(hex, 16, 32)
		colors[m[1]] = [3]float64{float64(n >> 16), float64(n >> 8 & 255), float64(n & 255)}
	}
	return colors
}

// contrast is that of WCAG 2.
func contrast(a, b [3]float64) float64 {
	light := func(c [3]float64) (sum float64) {
		for i, share := range []float64{0.2126, 0.7152, 0.0722} {
			if v := c[i] / 255; v <= 0.04045 {
				sum += share * v / 12.92
			} else {
				sum += share * math.Pow((v+0.055)/1.055, 2.4)
			}
		}
		return sum
	}
	x, y := light(a)+0.05, light(b)+0.05
	return max(x, y) / min(x, y)
}

// TestScriptsArePreloaded: the page names all its scripts, so that a browser does not find them one after the other.
func TestScriptsArePreloaded(t *testing.T) {
	all, err := files()
	if err != nil {
		t.Fatal(err)
	}
	var named, have []string
	for _, m := range regexp.MustCompile(`<link rel="modulepreload" href="(\w+\.js)">`).FindAllStringSubmatch(string(all[""].text), -1) {
		named = append(named, m[1])
	}
	for name := range all {
		if strings.HasSuffix(name, ".js") && name != "page.js" && name != "uplot.js" {
			have = append(have, name)
		}
	}
	slices.Sort(have)
	if !slices.Equal(named, have) {
		t.Errorf("the page preloads %v, want %v", named, have)
	}
}

// TestLegend: each color that a word can have is in the legend.
func TestLegend(t *testing.T) {
	all, err := files()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, m := range regexp.MustCompile(`\.pill\.(\w+)`).FindAllStringSubmatch(string(all["page.css"].text), -1) {
		kinds[m[1]] = true
	}
	if len(kinds) < 7 {
		t.Fatalf("only the colors %v", kinds)
	}
	_, legend, _ := strings.Cut(string(all[""].text), `class="legend"`)
	for kind := range kinds {
		if !strings.Contains(legend, `class="pill `+kind+`"`) {
			t.Errorf("the legend does not explain %s", kind)
		}
	}
}
