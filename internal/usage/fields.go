// Package usage reads from responses and requests what they cost: numbers at given places of a JSON text,
// or of each event of a stream, as they pass.
package usage

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
)

const (
	// MaxFields bounds the paths of one cost.
	MaxFields = 32

	// MaxDepth bounds the names of one path, and maxName the length of each.
	MaxDepth = 8
	maxName  = 64
)

// Fields are the numbers that make up a cost. They do not change, and many goroutines may use them.
type Fields struct {
	terms []*big.Rat // the weights of the numbers that are added: each is the last number at one of its paths, times the weight
	top   node
	paths int
}

// node is a place in JSON texts that paths lead to.
type node struct {
	name string
	next []*node
	term int // of a path that ends here; -1 if none does
}

// child returns the place that a name leads to, or nil.
func (n *node) child(name []byte) *node {
	for _, c := range n.next {
		if c.name == string(name) {
			return c
		}
	}
	return nil
}

// ParseFields parses terms such as "usage.output_tokens*4". A term may have several paths, separated by
// "|", for backends that name the same number differently.
func ParseFields(texts []string) (*Fields, error) {
	f := &Fields{top: node{term: -1}}
	for _, text := range texts {
		if err := f.add(text); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *Fields) add(text string) error {
	paths, weight, weighted := strings.Cut(text, "*")
	t := big.NewRat(1, 1)
	if weighted {
		var err error
		if t, err = parseWeight(weight); err != nil {
			return fmt.Errorf("%q: %w", text, err)
		}
	}
	for alternative := range strings.SplitSeq(paths, "|") {
		names := strings.Split(alternative, ".")
		if strings.Trim(alternative, "$.") == "" || slices.Contains(names, "") {
			return fmt.Errorf("%q: %q is not a path: write names with dots between, such as usage.total_tokens", text, alternative)
		}
		if names[0] == "$" || strings.ContainsAny(alternative, "[]\"' ") {
			return fmt.Errorf("%q: a path is just names with dots between, such as usage.total_tokens, without $, brackets or quotes", text)
		}
		if len(names) > MaxDepth || slices.ContainsFunc(names, func(n string) bool { return len(n) > maxName }) {
			return fmt.Errorf("%q: a path has at most %d names of at most %d bytes", text, MaxDepth, maxName)
		}
		at := &f.top
		for _, name := range names {
			next := at.child([]byte(name))
			if next == nil {
				next = &node{name: name, term: -1}
				at.next = append(at.next, next)
			}
			at = next
		}
		if at.term >= 0 {
			return fmt.Errorf("%q: the path %s is there twice", text, alternative)
		}
		at.term = len(f.terms)
		f.paths++
	}
	if f.terms = append(f.terms, t); f.paths > MaxFields {
		return fmt.Errorf("at most %d paths make up a cost, got %d", MaxFields, f.paths)
	}
	return nil
}

// sum returns the cost, rounded up, given the last value of each term. It reports whether any term has a number, and whether
// all of them and the sum are numbers of a cost.
func (f *Fields) sum(last *[MaxFields][]byte) (cost int64, found, valid bool) {
	total := new(big.Rat)
	for i, weight := range f.terms {
		if last[i] == nil {
			continue
		}
		n := exact(last[i])
		if n == nil || n.Sign() < 0 || n.Cmp(big.NewRat(MaxCost, 1)) > 0 {
			return 0, false, false
		}
		total.Add(total, n.Mul(n, weight))
		found = true
	}
	cost, valid = roundUp(total)
	return cost, found && valid, valid
}
