package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// dashboardFile is the dashboard of Grafana, seen from this directory.
const dashboardFile = "../../examples/grafana/dashboard.json"

// panel is what the plan shows of a panel of the dashboard.
type panel struct {
	Type, Title string
	GridPos     struct{ X, Y, W, H int }
	FieldConfig struct {
		Defaults struct{ Unit string }
	}
}

// The grid of Grafana has 24 columns. A heading is as high as one unit, and gets some more room here.
const (
	gridColumn, gridUnit = 40, 14
	headingRoom, planTop = 22, 34
	gap                  = 4
	letter               = 9 // how wide a letter of a title is at most, in the widest of the usual fonts
)

// plan returns the plan of the dashboard: where its panels are and what they show, without any data.
func plan() (diagram, error) {
	text, err := os.ReadFile(dashboardFile)
	if err != nil {
		return diagram{}, err
	}
	var dashboard struct{ Panels []panel }
	if err := json.Unmarshal(text, &dashboard); err != nil {
		return diagram{}, fmt.Errorf("%s: %w", dashboardFile, err)
	}
	d := diagram{width: 24*gridColumn + 2*gap, notes: []note{{gap, 20, "A plan of the dashboard: where its panels are. It is no screenshot, and shows no data."}}}
	var names []string
	headings := 0
	for _, p := range dashboard.Panels {
		x, y := gap+p.GridPos.X*gridColumn, planTop+p.GridPos.Y*gridUnit+headings*headingRoom
		if p.Type == "row" {
			headings++
			d.notes = append(d.notes, note{x, y + headingRoom + 2, p.Title})
			names = append(names, p.Title)
			continue
		}
		b := box{"box", x, y, p.GridPos.W*gridColumn - gap, p.GridPos.H*gridUnit - gap, "", []string{shows(p)}}
		b.title = wrap(p.Title, b.w/letter)
		d.boxes = append(d.boxes, b)
		d.height = max(d.height, b.y+b.h+gap)
	}
	d.label = "A plan of the dashboard, without data. Its rows: " + strings.Join(names, "; ") + "."
	return d, nil
}

// shows says in which form a panel shows its numbers.
func shows(p panel) string {
	form := map[string]string{"stat": "a number", "timeseries": "over time", "table": "a table"}[p.Type]
	switch p.FieldConfig.Defaults.Unit {
	case "reqps":
		return form + ", per second"
	case "percentunit":
		return form + ", in %"
	case "s":
		return form + ", in seconds"
	}
	return form
}

// wrap breaks a title into two lines if it has more letters than fit into one.
func wrap(title string, letters int) string {
	if len(title) <= letters {
		return title
	}
	if end := strings.LastIndexByte(title[:letters+1], ' '); end > 0 {
		return title[:end] + "\n" + title[end+1:]
	}
	return title
}
