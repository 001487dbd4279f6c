package topics

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
)

func statsColumns(throughput bool) []output.Column {
	columns := []output.Column{
		output.Text("TOPIC"), output.Numeric("TIMERS"), output.Numeric("PENDING").AsMinor(), output.Numeric("DUE"), output.Numeric("LEASED"),
		output.Numeric("RETRYING").AsMinor(), output.Numeric("PARKED").AsRare(), output.Numeric("DEAD").StyledBy(deadStyle), output.Short("OLDEST DUE").AsRare(),
		output.Short("PAUSED").StyledBy(output.WarnIfYes), output.Numeric("TIMERS/S").AsRare(), output.Numeric("DEAD/S").AsMinor().AsRare(),
		output.Text("BREAKER").AsRare().Styled(output.Bad), output.Text("FAULT").AsRare().Styled(output.Bad),
	}
	if throughput {
		columns = append(columns, cli.ThroughputColumns()...)
	}
	return columns
}

// deadStyle is the style of a number of dead letters.
func deadStyle(cell string) output.Style {
	if cell == "0" {
		return output.Plain
	}
	return output.Bad
}

// clearScreen moves the cursor to the top left and clears the screen.
const clearScreen = "\x1b[H\x1b[2J"

func (w *statsWatch) print(lines []statsLine, queues []queueLine, first bool) error {
	var out bytes.Buffer
	if w.app.WantsJSON() {
		for _, l := range lines {
			text, err := output.JSONLine(l)
			if err != nil {
				return err
			}
			out.Write(text)
		}
		for _, q := range queues {
			text, err := output.JSONLine(q)
			if err != nil {
				return err
			}
			out.Write(text)
		}
		return w.app.Write(out.Bytes())
	}
	redraws := w.watches && output.IsTerminal(w.app.Stdout) && os.Getenv("TERM") != "dumb"
	rows, columns := 0, 0
	if redraws {
		rows, columns = output.TerminalSize(w.app.Stdout)
	}
	switch {
	case first:
	case redraws:
		out.WriteString(clearScreen)
	default:
		out.WriteByte('\n')
	}
	begin := out.Len()
	screen := w.app.Screen()
	t := output.NewTable(&out, screen, statsColumns(w.since > 0)...)
	for _, l := range lines {
		about := func(n int64) string {
			if l.Estimated {
				return "~" + screen.Count(n)
			}
			return screen.Count(n)
		}
		oldest := screen.Time(l.oldestDue)
		if l.OldestDue != "" && !screen.Relative { // scripts read an age
			oldest = output.Age(time.Duration(l.OldestDueS * float64(time.Second)))
		}
		parked := ""
		if l.Parked > 0 {
			parked = screen.Count(l.Parked)
		}
		cells := []string{
			l.Topic, screen.Count(l.Timers), about(l.Pending), screen.Count(l.Due), about(l.Leased), about(l.Retrying), parked, screen.Count(l.Dead),
			oldest, output.YesNo(l.Paused), rate(l.TimersPerS), rate(l.DeadPerS), strings.TrimPrefix(l.breaker, "breaker "), l.Fault,
		}
		if w.since > 0 {
			cells = append(cells, l.Throughput.Cells(screen)...)
		}
		t.Row(cells...)
	}
	if !w.alone {
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if err := w.tableOfQueues(&out, queues); err != nil {
		return err
	}
	return w.app.Write(append(out.Bytes()[:begin:begin], fit(out.Bytes()[begin:], rows, columns)...))
}

func (w *statsWatch) tableOfQueues(out *bytes.Buffer, queues []queueLine) error {
	if len(queues) == 0 && !w.alone {
		return nil
	}
	if !w.alone {
		out.WriteByte('\n')
	}
	screen := w.app.Screen()
	columns := queueColumns()
	if w.since > 0 {
		columns = append(columns, cli.ThroughputColumns()...)
	}
	t := output.NewTable(out, screen, columns...)
	for _, q := range queues {
		cells := queueRow(screen, q)
		if w.since > 0 {
			cells = append(cells, q.Throughput.Cells(screen)...)
		}
		t.Row(cells...)
	}
	return t.Flush()
}

// fit cuts the lines that do not fit on the screen, so that the column names stay
// visible, and appends how many it cut. If rows or columns are 0, the size is
// unknown and nothing is cut.
func fit(lines []byte, rows, columns int) []byte {
	const below = 2 // the line about cut lines, and the cursor
	if rows <= below || columns <= 0 {
		return lines
	}
	all := bytes.SplitAfter(lines, []byte{'\n'})
	all = all[:len(all)-1] // the last one is empty
	taken, kept := 0, 0
	for i, line := range all {
		height := max(1, (ansi.StringWidth(string(line))+columns-1)/columns)
		more := below
		if i == len(all)-1 {
			more-- // nothing would be left off
		}
		if taken+height > rows-more {
			return fmt.Appendf(lines[:kept:kept], "%d more: name topics with --topic, or make the terminal larger\n", len(all)-i)
		}
		taken, kept = taken+height, kept+len(line)
	}
	return lines
}

func rate(perSecond *float64) string {
	if perSecond == nil {
		return ""
	}
	text := strconv.FormatFloat(*perSecond, 'f', 1, 64)
	if *perSecond > 0 {
		text = "+" + text
	}
	return text
}
