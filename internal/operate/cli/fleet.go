package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/shell"
	"github.com/seed-161337e5/caddyratelimit/internal/say"
)

// This file asks one instance about all that share a store with it.

const fleetFlag = "fleet"

// ofFleet adds the flag of commands that one instance answers for its fleet.
func ofFleet(cmd *cobra.Command) {
	cmd.Flags().Bool(fleetFlag, true, "Answer for all instances that share a store with this one; --fleet=false is for this one only")
}

// chooseFleet finds out by the flags whether the instance is asked about its fleet. Programs have to say so, because their
// answer has another form.
func (c *instance) chooseFleet(cmd *cobra.Command) {
	flag := cmd.Flags().Lookup(fleetFlag)
	c.ofFleet = flag != nil && flag.Value.String() == "true" && (flag.Changed || !c.json && !c.several)
}

// counter says whose counts a command shows.
func (c *instance) counter() string {
	if c.view == nil || c.view.Counted < 2 {
		return "this instance"
	}
	return say.Plural(int64(c.view.Counted), "instance")
}

// told is what to say of instances in a state, with their names and how old their reports are.
var told = map[string]string{
	adminapi.StateSilent: "%[1]s has been silent for %[2]s; its counts are of that time.",
	adminapi.StateLeft:   "%[1]s has left; its counts are those of its last report, %[2]s ago.",
	adminapi.StateMute:   "%[1]s does not report: it is not counted.",
}

// printView says below an answer which instances it is about, as far as that is worth a line.
func (c *instance) printView() {
	if c.view == nil {
		return
	}
	for _, m := range c.view.Instances {
		if format := told[m.State]; format != "" {
			c.say(format, m.Name, duration.Seconds(m.Age))
		}
		if len(m.Differs) > 0 {
			c.say("%s has another config: these zones differ: %s.", m.Name, strings.Join(few(m.Differs), ", "))
		}
	}
	c.printNotes()
}

// printNotes says what is missing in the answers of instances.
func (c *instance) printNotes() {
	if c.view == nil {
		return
	}
	for _, note := range c.view.Notes {
		c.say("Note: %s.", note)
	}
}

// maxNamed bounds the zones that a line names.
const maxNamed = 5

// few returns the first few names, for a shell, and how many more there are.
func few(names []string) (words []string) {
	for _, name := range names[:min(maxNamed, len(names))] {
		words = append(words, shell.Word(name))
	}
	if more := len(names) - maxNamed; more > 0 {
		words = append(words, fmt.Sprintf("and %d more", more))
	}
	return words
}
