// Package explained prints explanations, for the commands explain.
package explained

import (
	"strings"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/explain"
)

// Line is the JSON line of an explanation.
type Line struct {
	State    string     `json:"state"`
	Summary  string     `json:"summary"`
	Waits    []waitLine `json:"waits"`
	Earliest string     `json:"earliest"`
	Past     []stepLine `json:"past"`
	Commands []string   `json:"commands"`
	Unread   []string   `json:"unread"`
}

type waitLine struct {
	Cause string `json:"cause"`
	Text  string `json:"text"`
	Since string `json:"since"`
	Until string `json:"until"`
	Do    string `json:"do"`
}

type stepLine struct {
	At   string `json:"at"`
	Text string `json:"text"`
}

func newLine(e explain.Explanation) Line {
	line := Line{
		State: e.State, Summary: e.Summary, Waits: []waitLine{}, Earliest: output.Stamp(e.Earliest), Past: []stepLine{},
		Commands: append([]string{}, e.Commands...), Unread: append([]string{}, e.Unread...),
	}
	for _, w := range e.Waits {
		line.Waits = append(line.Waits, waitLine{string(w.Cause), w.Text, output.Stamp(w.Since), output.Stamp(w.Until), w.Do})
	}
	for _, s := range e.Past {
		line.Past = append(line.Past, stepLine{output.Stamp(s.At), s.Text})
	}
	return line
}

// Print prints an explanation.
func Print(a *cli.App, e explain.Explanation) error {
	if a.WantsJSON() {
		return a.PrintJSON(newLine(e))
	}
	screen := a.Screen()
	rows := [][2]string{{"state", e.State}, {"now", e.Summary}}
	row := func(name, value string) { rows = append(rows, [2]string{name, value}) }
	for _, w := range e.Waits {
		said := []string{string(w.Cause) + ": " + w.Text}
		if !w.Since.IsZero() {
			said = append(said, "since "+screen.Time(w.Since))
		}
		if !w.Until.IsZero() {
			said = append(said, "until "+screen.Time(w.Until))
		}
		row("waits", strings.Join(said, ", "))
		if w.Do != "" {
			row("do", "wakebell "+w.Do)
		}
	}
	if !e.Earliest.IsZero() {
		row("earliest", screen.Time(e.Earliest))
	}
	for _, s := range e.Past {
		row("past", screen.Time(s.At)+"  "+s.Text)
	}
	for _, command := range e.Commands {
		row("see", "wakebell "+command)
	}
	for _, part := range e.Unread {
		row("not read", part)
	}
	return a.PrintRows(rows)
}
