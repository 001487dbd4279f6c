package dashboard

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"time"

	"github.com/wakebell/wakebell/dashboard/internal/show"
	"github.com/wakebell/wakebell/wakebelltype"
)

// barPart is a part of a bar, in hundredths of its width.
type barPart struct{ Name, X, Width string }

// barData is a bar of the states of timers.
type barData struct {
	Label string
	Parts []barPart
}

// newBar divides the bar by the states. A state with a single timer among many stays
// visible.
func newBar(s wakebelltype.Stats) barData {
	states := []struct {
		name string
		n    int64
	}{{"running", s.Leased}, {"due", s.Due}, {"retrying", s.Retrying}, {"parked", s.Parked}, {"pending", s.Pending}}
	var b barData
	var labels []string
	total, x := float64(0), float64(0)
	for _, state := range states {
		total += max(0, float64(state.n))
	}
	for _, state := range states {
		labels = append(labels, fmt.Sprintf("%s %s", show.Count(state.n), state.name))
		if state.n <= 0 {
			continue
		}
		width := max(1, 100*float64(state.n)/total)
		b.Parts = append(b.Parts, barPart{state.name, text2(x), text2(min(width, 100-x))})
		x += width
	}
	b.Label = strings.Join(labels, ", ")
	return b
}

func text2(x float64) string { return strconv.FormatFloat(max(0, x), 'f', 2, 64) }

// local writes an instant that the script of the page converts to the zone of the
// viewer.
func local(t time.Time) template.HTML {
	return template.HTML(fmt.Sprintf(`<time data-absolute datetime="%s">%s</time>`,
		t.UTC().Format(time.RFC3339Nano), show.Stamp(t)))
}
