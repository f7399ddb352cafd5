package cli

import "testing"

// TestForeignTexts: a text of somebody else is one line in a terminal, and in Markdown it ends no cell.
func TestForeignTexts(t *testing.T) {
	if got := inLine("a\x1b[31m\nb"); got != `a\u001b[31m b` {
		t.Errorf("in a line: got %q", got)
	}
	for text, want := range map[string]string{
		"a|b":        "`a\\|b`",
		"`|<img x>|": "`` `\\|<img x>\\| ``",
		"":           "`  `",
	} {
		if got := inCell(text); got != want {
			t.Errorf("%q in a cell: got %s, want %s", text, got, want)
		}
	}
	if got := inMarkdown("a|b"); got != "`a|b`" {
		t.Errorf("in a list: got %s", got)
	}
}
