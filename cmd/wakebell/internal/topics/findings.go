package topics

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/wakebelltype"
)

// grades are the grades of findings in the order in which they are printed.
var grades = []struct {
	grade wakebelltype.Grade
	style output.Style
}{
	{wakebelltype.GradeBad, output.Bad},
	{wakebelltype.GradeUnknown, output.Warn},
	{wakebelltype.GradeWarn, output.Warn},
	{wakebelltype.GradeGood, output.Good},
}

// rank returns the place of a grade in the order, and its style.
func rank(grade string) (int, output.Style) {
	for i, g := range grades {
		if string(g.grade) == grade {
			return i, g.style
		}
	}
	return len(grades), output.Plain
}

// printFindings prints findings, the worst first, and a summary. Its error says how
// many are bad.
func printFindings(a *cli.App, lines []findingLine) error {
	slices.SortStableFunc(lines, func(x, y findingLine) int {
		first, _ := rank(x.Grade)
		second, _ := rank(y.Grade)
		return first - second
	})
	screen := a.Screen()
	counts := map[string]int{}
	for _, line := range lines {
		counts[line.Grade]++
		if err := printFinding(a, screen, line); err != nil {
			return err
		}
	}
	if !a.WantsJSON() {
		var parts []string
		for _, g := range grades {
			part := fmt.Sprintf("%d %s", counts[string(g.grade)], g.grade)
			if counts[string(g.grade)] > 0 {
				part = screen.Paint(g.style, part)
			}
			parts = append(parts, part)
		}
		if err := a.Printf("\n%d checks: %s\n", len(lines), strings.Join(parts, ", ")); err != nil {
			return err
		}
	}
	if bad := counts[string(wakebelltype.GradeBad)]; bad > 0 {
		return fmt.Errorf("%d of %d checks are bad", bad, len(lines))
	}
	return nil
}

// findingIndent is the width of grade and check, with the gaps behind them.
const findingIndent = 22

// printFinding prints a finding and, on a second line, what to do about it.
func printFinding(a *cli.App, screen output.Screen, f findingLine) error {
	if a.WantsJSON() {
		return a.PrintJSON(f)
	}
	of := f.Server + f.Topic + f.Queue
	if of != "" {
		of += ": "
	}
	_, style := rank(f.Grade)
	text := screen.Paint(style, fmt.Sprintf("%-7s", f.Grade)) + fmt.Sprintf("  %-11s  %s\n", f.Check, wrapped(screen, output.Escape(of+f.Found)))
	if f.Do != "" {
		text += strings.Repeat(" ", findingIndent) + wrapped(screen, "-> "+output.Escape(f.Do)) + "\n"
	}
	return a.Write([]byte(text))
}

// wrapped wraps a text on a terminal, with the indent of findings.
func wrapped(screen output.Screen, text string) string {
	if screen.Columns < 2*findingIndent {
		return text
	}
	return strings.ReplaceAll(ansi.Wordwrap(text, screen.Columns-findingIndent, ""), "\n", "\n"+strings.Repeat(" ", findingIndent))
}
