package zone

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/gate"
	"github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
)

const (
	// DefaultGateWait is the longest that a request waits for a slot by default.
	DefaultGateWait = time.Second

	// MaxClasses is how many classes a zone may have, with that of requests without a priority.
	MaxClasses = stats.MaxClasses

	// classStep is how much more the slots of a class weigh than those of the next one.
	classStep = 10
)

// ClassOthers is the name of the class of requests without a priority.
const ClassOthers = "others"

// Adaptive is what a config says of a zone whose limit finds itself.
type Adaptive struct {
	Min, Max int // bounds of the limit; 0 is none
	MaxWait  time.Duration
	Whole    bool // a request holds its slot until all of its response was sent

	Priority *key.Template // names the class of a request; nil without priorities
	Classes  []string      // the first one matters most; all other requests are in one more class
	byName   map[string]int
}

// SetPriority sets the classes, and the text that names the class of a request.
func (a *Adaptive) SetPriority(of *key.Template, classes []string) {
	a.Priority, a.Classes, a.byName = of, classes, make(map[string]int, len(classes))
	for i, name := range classes {
		a.byName[of.NormalizeName(name)] = i
	}
}

// Options are the options of the zone's gate.
func (a *Adaptive) Options() gate.Options {
	o := gate.Options{Min: a.Min, Max: a.Max, MaxWait: a.MaxWait, Weights: []float64{1}}
	for range a.Classes {
		o.Weights = append([]float64{o.Weights[0] * classStep}, o.Weights...)
	}
	return o
}

// ClassName is the name of a class. It is empty if the zone has no priorities.
func (a *Adaptive) ClassName(class int) string {
	switch {
	case a.Priority == nil:
		return ""
	case class < len(a.Classes):
		return a.Classes[class]
	}
	return ClassOthers
}

// describe describes what all zones of the same name must agree on.
func (a *Adaptive) describe() string {
	text := "adaptive"
	if a.Min > 0 {
		text += fmt.Sprintf(" min %d", a.Min)
	}
	if a.Max > 0 {
		text += fmt.Sprintf(" max %d", a.Max)
	}
	if a.MaxWait != DefaultGateWait {
		text += " max_wait " + duration.Format(a.MaxWait)
	}
	if a.Whole {
		text += " hold response"
	}
	if a.Priority != nil {
		text += " priority " + a.Priority.Form() + " " + strings.Join(a.Classes, " ")
	}
	return text
}

// classify finds the class of a request. One without a class that the zone knows is in the last one.
func (z *Zone) classify(c *Check, r *placeholder.Request) error {
	a := z.Adaptive
	if c.Class = len(a.Classes); a.Priority == nil {
		return nil
	}
	name, err := a.Priority.Expand(r)
	if repeated := (*key.RepeatedError)(nil); errors.As(err, &repeated) {
		return c.reject(http.StatusBadRequest, err)
	}
	if len(a.Priority.Parts) > 1 {
		name = a.Priority.NormalizeName(name)
	}
	if class, ok := a.byName[name]; ok {
		c.Class = class
	}
	c.Plan = a.ClassName(c.Class)
	return nil
}
