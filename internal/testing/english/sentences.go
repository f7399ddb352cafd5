package english

import (
	"fmt"
	"regexp"
	"strings"
)

// At most so many words has a sentence of a page, and so many on average.
const (
	longest = 35
	average = 18
)

// sentenceEnd is where a sentence ends.
var sentenceEnd = regexp.MustCompile(`[.!?]+["')]*(?:\s+|$)`)

// abbreviations do not end a sentence.
var abbreviations = strings.NewReplacer("e.g. ", "eg ", "i.e. ", "ie ", "vs. ", "vs ", "A. S. ", "AS ", " J. ", " J ", "et al. ", "et al ")

// sentences returns the sentences of a text, and where they begin.
func sentences(t Text) (found []string, starts []int) {
	text, start := t.String(), 0
	marked := abbreviations.Replace(text)
	if len(marked) != len(text) {
		text = marked // the places are off by a few bytes, which hardly ever is another line
	}
	for _, end := range append(sentenceEnd.FindAllStringIndex(text, -1), []int{len(text), len(text)}) {
		if words(text[start:end[1]]) > 0 {
			found, starts = append(found, text[start:end[1]]), append(starts, start)
		}
		start = end[1]
	}
	return found, starts
}

// words counts the words of a sentence: what has a letter or a digit.
func words(sentence string) int {
	n := 0
	for field := range strings.FieldsSeq(sentence) {
		if strings.ContainsAny(strings.ToLower(field), "abcdefghijklmnopqrstuvwxyz0123456789") {
			n++
		}
	}
	return n
}

// Lengths returns the sentences of a page that are too long, and whether all are too long on average.
// Cells of tables do not count for the average.
func Lengths(page []Text) []Finding {
	var findings []Finding
	count, total := 0, 0
	for _, t := range page {
		found, starts := sentences(t)
		for i, sentence := range found {
			n := words(sentence)
			if n > longest {
				findings = append(findings, Finding{
					t.at(starts[i]), fmt.Sprintf("%d words: %q", n, strings.TrimSpace(sentence)),
					fmt.Sprintf("write sentences of at most %d words", longest),
				})
			}
			if !t.Cell {
				count, total = count+1, total+n
			}
		}
	}
	if count > 0 && float64(total) >= float64(average*count) {
		findings = append(findings, Finding{
			page[0].File, fmt.Sprintf("sentences have %.1f words on average", float64(total)/float64(count)),
			fmt.Sprintf("write short ones: fewer than %d on average", average),
		})
	}
	return findings
}
