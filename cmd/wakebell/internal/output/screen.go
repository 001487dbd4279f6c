package output

import (
	"os"
	"time"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
	"github.com/dustin/go-humanize"
)

// Screen determines how output is shown. The zero value is for programs: absolute
// instants, plain numbers, no colour, and columns of any width.
type Screen struct {
	Columns  int  // width of the terminal; 0: not a terminal, nothing is cut
	Color    bool // styles are shown
	Relative bool // instants are shown relative to now

	now func() time.Time // nil: time.Now
}

// NewScreen returns the screen of a writer: that of a terminal if it is one.
func NewScreen(w any) Screen {
	if !IsTerminal(w) {
		return Screen{}
	}
	_, columns := TerminalSize(w)
	if columns == 0 {
		columns = usualColumns
	}
	color := colorprofile.Env(os.Environ()) > colorprofile.ASCII // NO_COLOR, TERM and the like
	return Screen{Columns: columns, Color: color, Relative: true}
}

// usualColumns is the width of a terminal that does not report it.
const usualColumns = 80

// Style is the look of a text. Only the 16 colours of the terminal's theme are used.
type Style uint8

// The styles.
const (
	Plain Style = iota
	Head        // names of columns
	Faint       // of less interest
	Good
	Warn
	Bad
)

var styles = [...]ansi.Style{
	Plain: ansi.NewStyle(),
	Head:  ansi.NewStyle().Bold(),
	Faint: ansi.NewStyle().Faint(),
	Good:  ansi.NewStyle().ForegroundColor(ansi.Green),
	Warn:  ansi.NewStyle().ForegroundColor(ansi.Yellow),
	Bad:   ansi.NewStyle().ForegroundColor(ansi.Red),
}

// Paint returns text in a style, or as it is without colour.
func (s Screen) Paint(style Style, text string) string {
	if !s.Color || style == Plain || text == "" {
		return text
	}
	return styles[style].Styled(text)
}

// Time formats an instant; empty for none.
func (s Screen) Time(t time.Time) string {
	if !s.Relative {
		return Stamp(t)
	}
	now := time.Now
	if s.now != nil {
		now = s.now
	}
	return Relative(t, now())
}

// Count formats a number, on a terminal with separators.
func (s Screen) Count(n int64) string {
	if s.Columns == 0 {
		return Number(n)
	}
	return humanize.Comma(n)
}

// Cut shortens a line to the width of the screen; it ends with … then.
func (s Screen) Cut(line string) string {
	if s.Columns == 0 {
		return line
	}
	return ansi.Truncate(line, s.Columns, "…")
}

// WarnIfYes is the style of the cells of YesNo that deserve attention if they are yes.
func WarnIfYes(cell string) Style {
	if cell == YesNo(true) {
		return Warn
	}
	return Plain
}
