package topics

import (
	"cmp"
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

// sameShown is how many findings of one check with one grade are printed without --all: of a
// thousand topics, the worst.
const sameShown = 10

// printFindings prints findings, the worst first and those of a check together, and a
// summary. Without all it leaves out what is good, and of many of one check the rest. Its
// error says how many are bad.
func printFindings(a *cli.App, lines []findingLine, all bool) error {
	order := map[string]int{}
	for _, line := range lines {
		if _, known := order[line.Check]; !known {
			order[line.Check] = len(order)
		}
	}
	slices.SortStableFunc(lines, func(x, y findingLine) int {
		first, _ := rank(x.Grade)
		second, _ := rank(y.Grade)
		return cmp.Or(first-second, order[x.Check]-order[y.Check])
	})
	screen := a.Screen()
	counts := map[string]int{}
	for i, line := range lines {
		counts[line.Grade]++
		if line.Grade == string(wakebelltype.GradeGood) && !all {
			continue
		}
		nth := 0 // among those of the check with the grade
		for nth < i && lines[i-nth-1].Check == line.Check && lines[i-nth-1].Grade == line.Grade && nth < sameShown {
			nth++
		}
		if nth == sameShown && !all && !a.WantsJSON() {
			if i+1 == len(lines) || lines[i+1].Check != line.Check || lines[i+1].Grade != line.Grade {
				if err := printMore(a, lines[:i+1]); err != nil {
					return err
				}
			}
			continue
		}
		if err := printFinding(a, screen, line); err != nil {
			return err
		}
	}
	if !a.WantsJSON() {
		if err := printSummary(a, screen, counts, len(lines), all); err != nil {
			return err
		}
	}
	if bad := counts[string(wakebelltype.GradeBad)]; bad > 0 {
		return fmt.Errorf("%d of %d checks are bad", bad, len(lines))
	}
	return nil
}

// printMore says how many findings like the last of lines are not shown.
func printMore(a *cli.App, lines []findingLine) error {
	last, n := lines[len(lines)-1], 0
	for n < len(lines) && lines[len(lines)-1-n].Check == last.Check && lines[len(lines)-1-n].Grade == last.Grade {
		n++
	}
	return a.Printf("%s  %-11s  and %s more; --all shows them\n", fmt.Sprintf("%-7s", last.Grade), last.Check, output.Number(int64(n-sameShown)))
}

func printSummary(a *cli.App, screen output.Screen, counts map[string]int, checks int, all bool) error {
	var parts []string
	for _, g := range grades {
		part := fmt.Sprintf("%d %s", counts[string(g.grade)], g.grade)
		if counts[string(g.grade)] > 0 {
			part = screen.Paint(g.style, part)
		}
		parts = append(parts, part)
	}
	more := ""
	if counts[string(wakebelltype.GradeGood)] > 0 && !all {
		more = "; --all shows what is good"
	}
	gap := "\n"
	if counts[string(wakebelltype.GradeGood)] == checks && !all {
		gap = ""
	}
	return a.Printf("%s%d checks: %s%s\n", gap, checks, strings.Join(parts, ", "), more)
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
