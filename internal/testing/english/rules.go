package english

import (
	"cmp"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// rule is a phrase that does not read as plain English, and what to write instead.
type rule struct {
	pattern *regexp.Regexp
	cure    string
	kinds   []Kind // none: all
	bad     string // a sentence in which the rule finds something
	// A text without any of these has no match. To look for them is much faster than the pattern.
	literals []string
}

func phrase(pattern, cure, bad string, kinds ...Kind) rule {
	return exact(`(?i)`+pattern, cure, bad, kinds...)
}

// exact is phrase for patterns in which case matters.
func exact(pattern, cure, bad string, kinds ...Kind) rule {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		panic(err)
	}
	return rule{regexp.MustCompile(pattern), cure, kinds, bad, literals(parsed)}
}

// literals returns texts in lower case, one of which is in every match. Without any, nothing is known.
func literals(re *syntax.Regexp) []string {
	shortest := func(texts []string) int {
		n := 0
		for i, text := range texts {
			if i == 0 || len(text) < n {
				n = len(text)
			}
		}
		return n
	}
	switch re.Op {
	case syntax.OpLiteral:
		return []string{strings.ToLower(string(re.Rune))}
	case syntax.OpCapture, syntax.OpPlus:
		return literals(re.Sub[0])
	case syntax.OpConcat:
		var best []string
		for _, sub := range re.Sub {
			if found := literals(sub); shortest(found) > shortest(best) {
				best = found
			}
		}
		return best
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			found := literals(sub)
			if len(found) == 0 {
				return nil
			}
			all = append(all, found...)
		}
		return all
	}
	return nil
}

// rules has the phrases that were found in this repository once, each with its cure.
var rules = []rule{
	// Words of another century.
	phrase(`\b(?:tells?|told) whether\b`, `write "reports whether"`, "full tells whether the shard has no room", Comment),
	phrase(`, for (?:it|he|she|they|there|nobody|this|that|these|those|its|their|the \w+|an? \w+|no \w+|each \w+) (?:is|are|was|were|has|have|had|would|could|can|cannot|may|must|will|does|do|did|needs?)\b`,
		`write "because"`, "Zone clients refuses it, for it has used 100 of 100"),
	phrase(`\bbe (?:it|they)\b`, `write "even if" or "whether"`, "Whatever Redis answers, be it that this user may not ask"),
	phrase(`\bwhoever\b|\bwhomever\b`, `name who it is: "a client that", "operators"`, "whoever may only look is given GET"),
	phrase(`\bwhom\b`, `write a sentence with a subject: "the clients that it refuses"`, "It cannot say whom it refuses."),
	phrase(`\b(?:thereby|therein|thereof|whereby|wherein|whereof|hereby|herein|henceforth|albeit|lest|whilst|amongst|hence|thus|upon|nought|shall|ought)\b`,
		`write a word of today: "so", "while", "among", "on"`, "A second zone is thereby charged."),
	phrase(`\blikewise\b`, `write "also" or "the same"`, "The queue likewise."),
	phrase(`\banew\b|\bafresh\b`, `write "again" or "from zero"`, "The client begins anew."),
	phrase(`\bsees? to (?:it|that)\b`, `write "makes sure"`, "run sees to it that the store closes"),
	phrase(`\b(?:in vain|not to be had|to be had)\b`, `say what happens`, "It asks in vain."),
	phrase(`\btells? of\b|\btold of\b`, `write "reports" or "describes"`, "get tells of bans"),
	phrase(`\b(?:the|and|or) like\b[.,;:]`, `list what is meant`, "Proxies, balancers and the like."),
	phrase(`\bcommonly\b`, `write "usually" or "often"`, "A client commonly has a /64."),
	phrase(`\bdearer\b|\bdear\b`, `write "more expensive"`, "That is a dearer script."),
	phrase(`\bcease[sd]?\b`, `write "stop"`, "The count ceases to grow."),
	phrase(`\bmuch too (?:few|many)\b|\bhalf of which\b|\bnone of which\b|\ball of which\b|\bmost of which\b|\bby when\b`,
		`write two sentences`, "It takes 446 bytes, half of which is for renewing it."),

	// Persons that are code, and clauses without a noun.
	phrase(`\b(?:caddy|redis|sentinel|store|server|node|handler|request|caller|goroutine|process|config|zone|response|writer|subscriber|call|upstream|proxy|client|key)s? who\b`,
		`write "that": code is no person`, "The caller who has left gets nothing."),
	phrase(`\b(?:he|she|him|his|hers|himself|herself)\b`, `write "it" or "they"`, "The caller gets his buffer back."),
	exact(`(?:^|[.!:;] )Who(?:ever)? [^?]*(?:$|\.)`, `write "Clients that"`, "Who is blocked is refused."),
	exact(`(?:^|[.!:;] )Whatever (?:is|was|comes|came|has|stands|becomes)\b`, `name what it is: "Everything that"`, "Whatever is not known is refused."),
	phrase(`, who (?:is|are|has|have|gets?|may|must|can)\b`, `write a new sentence with a subject`, "It refuses clients, who have to wait."),
	phrase(`\b(?:those|somebody|someone|anybody|one|ones) who\b`, `write "clients that", "people who"`, "Those who wait are tried again."),

	// Words that mean something else here.
	phrase(`\bstands? for\b|\bstood for\b`, `write "is", "means" or "replaces"`, "A star stands for the empty key."),
	phrase(`\b(?:stands?|stood|standing) (?:in|at|before|behind|beside|between|above|below|there|here|on|several|alone|first|last)\b`,
		`write "is"`, "The option stands in the zone."),
	phrase(`\b(?:becomes?|became|become) of\b`, `write "what happens to"`, "It says what becomes of a request."),
	phrase(`\b(?:is|are|was|were|been|be|being|not) told (?:when|how|why|what|that|to|so|by|less|more|all|too)\b`, `write "gets", "learns" or "sees"`, "The client is told when to come back.", Page, Message),
	phrase(`\bg(?:ive|ives|ave|iving) no answer\b`, `write "does not answer"`, "Redis gives no answer."),
	phrase(`\btakes no (?:overrides?|options?|placeholders?|values?|windows?|keys?|arguments?)\b`, `write "does not accept" or "has no"`, "The zone takes no overrides."),
	phrase(`\bthat is so\b|\bwhich is so\b|\bthis is so\b`, `write "this also applies to" or "then"`, "That is so with all algorithms."),
	phrase(`\b(?:let|lets|letting) know\b|\bgets? to (?:see|know|hear)\b`, `write "shows", "learns" or "sees"`, "This is what you get to see."),
	phrase(`\bthe way back\b|\ban amnesty\b|\bsafe side\b`, `say what happens`, "Each eviction is an amnesty."),

	// Word order.
	exact(`(?:^|[.!:;] )(?:(?:Neither|Nor|So|Only then|Then only) (?:is|are|does|has|have|can|must|may|will)\b|So do (?:the|all|[a-z]+s)\b|Not so\b)`, `put the subject first: "X does not either", "X also"`, "So does a cluster."),
	phrase(`\b(?:and|but) (?:so|neither|nor) (?:is|are|do|does|has|have|can|must|may|will|did|was|were)\b`, `put the subject first: "X also", "X does not either"`, "The log is bounded, and so is the queue."),
	phrase(`, so (?:is|are|do|does|has|have) (?:the|a|an|all|each|it|they)\b`, `put the subject first`, "The limit is exact, so is the wait."),
	exact(`(?:^|[.!:;] )Of (?:these|those|the|a|an|none|all|slots)\b[^,.]*, `, `put the subject first`, "Of these, none is charged."),
	exact(`(?:^|[.!:;] )(?:There|Here) need\b|\b(?:there|it|they|he|nobody|one|a \w+) need(?:s)? be\b`, `write "is needed"`, "There need be none."),
	exact(`(?:^|[.!:;] )Needed\.|\bof it nothing\b|\bof them none\b|\bof this none\b`, `write a whole sentence`, "Of it nothing is kept, of them none."),
	phrase(`\bneed not\b`, `write "does not have to"`, "Redis need not answer."),
	phrase(`\bmay it be\b|\bis it so\b|\bhad it not\b|\bwere it\b|\bhad (?:it|they|there) been\b|\bshould (?:it|there) (?:be|not)\b`, `write "if"`, "Were it read, it would be charged."),

	phrase(`(?:^|[.:;] |because |and |but )to [a-z]+ (?:[a-z]+ ){0,4}(?:costs?|takes?|would|does not|is (?:slow|more|less|much))\b`,
		`begin with a noun: "Setting one costs"`, "To set one costs a third of a decision."),
	phrase(`\ball else\b`, `write "everything else"`, "With all else as it is, it passes."),
	phrase(`\b(?:do|does|is|are) not [a-z]+ since\b`, `write "has not ... since"`, "Caddy does not answer since 10:00."),
	phrase(`\bwill do[.,;]`, `say what is possible: "you can use"`, "An older log will do."),
	phrase(`\bfor ever\b`, `write "forever"`, "It is redirected for ever."),

	// Chains.
	phrase(`\bso that\b[^.]*\bso that\b`, `write two sentences`, "It waits so that others go first so that it is fair."),
	phrase(`\bwhich[^.,;]*, which\b`, `write two sentences`, "It asks the store which decides, which takes a call."),

	// One word for one thing: CONTRIBUTING.md.
	phrase(`\bheader fields?\b`, `write "header": CONTRIBUTING.md`, "The header field is set.", Page, Message),
	exact(`\bCaddys\b`, `write "instances": CONTRIBUTING.md`, "Two Caddys share it."),
	phrase(`\b(?:declined|turned away)\b`, `write "refused" (CONTRIBUTING.md), or "rejected" if the store was not asked`, "The request is declined."),
	phrase(`\b(?:sanctions?|amnesty|pardon(?:s|ed)?)\b`, `write "ban" or "override": CONTRIBUTING.md`, "All sanctions are cleared."),
	phrase(`\b(?:quota|rate) group\b|\blimit group\b|\bbucket group\b`, `write "zone": CONTRIBUTING.md`, "Each limit group has a key."),
	phrase(`\bwhitelist(?:s|ed)?\b|\bblacklist(?:s|ed)?\b|\ballowlist(?:s|ed)?\b|\bdenylist(?:s|ed)?\b`, `write "exempt" or "block": CONTRIBUTING.md`, "It is on the whitelist."),
	phrase(`\bshadow mode\b`, `write "dry run": CONTRIBUTING.md`, "Try it in shadow mode."),
}

// Phrases returns what the rules find in a text.
func Phrases(t Text) []Finding {
	type match struct {
		start, end int
		cure       string
	}
	var matches []match
	text := t.String()
	lower := strings.ToLower(text)
	for _, r := range rules {
		if len(r.kinds) > 0 && !slices.Contains(r.kinds, t.Kind) {
			continue
		}
		if len(r.literals) > 0 && !slices.ContainsFunc(r.literals, func(l string) bool { return strings.Contains(lower, l) }) {
			continue
		}
		for _, found := range r.pattern.FindAllStringIndex(text, -1) {
			matches = append(matches, match{found[0], found[1], r.cure})
		}
	}
	slices.SortFunc(matches, func(a, b match) int { return cmp.Compare(a.start, b.start) })
	var findings []Finding
	for _, m := range matches {
		findings = append(findings, Finding{t.at(m.start), `"` + text[m.start:m.end] + `"`, m.cure})
	}
	return findings
}
