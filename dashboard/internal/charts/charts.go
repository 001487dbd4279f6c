// Package charts draws what happened on topics and what will be due, as the templates of the
// dashboard show it. It reads nothing.
package charts

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/wakebell/wakebell/dashboard/internal/show"
	"github.com/wakebell/wakebell/forecast"
	"github.com/wakebell/wakebell/wakebelltype"
)

// MaxBars is the most bars of a chart.
const MaxBars = 72

// Range is how far back charts of a page reach.
type Range struct {
	Name string // in the address of the page
	Span time.Duration
	Text string
}

// Ranges can be chosen. What is older than a day is stored by day.
var Ranges = []Range{
	{"1h", time.Hour, "hour"}, {"6h", 6 * time.Hour, "6 hours"}, {"24h", 24 * time.Hour, "24 hours"}, {"30d", 30 * 24 * time.Hour, "30 days"},
}

// Default is the Range of a page that names none.
var Default = Ranges[1]

// RangeOf returns the Range of a name, or Default.
func RangeOf(name string) Range {
	if i := slices.IndexFunc(Ranges, func(r Range) bool { return r.Name == name }); i >= 0 {
		return Ranges[i]
	}
	return Default
}

// Part is a part of a bar, in hundredths of the width and height of the chart.
type Part struct{ Name, X, Y, Width, Height string }

// Column is the place of a bar, from the bottom to the top, with what it stands for.
type Column struct{ X, Width, Title string }

// Axes are the texts beside a chart: of the highest value and of half the height, and of the
// instants at the left, in the middle and at the right.
type Axes struct{ Top, Middle, Left, Center, Right string }

// Plot is what all charts have.
type Plot struct {
	Label   string
	Parts   []Part
	Columns []Column
	Axes    Axes
}

// Past is a chart of what happened, and its sums.
type Past struct {
	Plot
	Queue bool
	Range string // as text
	Sum   wakebelltype.ThroughputCounts
	Most  string // that a bar stands for, as a rate
}

// Late is a chart of how late timers began.
type Late struct {
	Plot
	Range              string
	Started            int64
	Median, P99, Worst time.Duration
}

// NewPast stacks what was handled, what failed and what died, in bars of equal times.
func NewPast(t wakebelltype.Throughput) Past {
	bars, each := barsOf(t)
	c, most := Past{Range: span(t)}, int64(0)
	for _, bar := range bars {
		most = max(most, bar.Handled+bar.Failed+bar.Dead)
		c.Sum.Add(bar)
	}
	c.Label = fmt.Sprintf("Last %s: %s handled, %s failed, %s dead",
		c.Range, show.Count(c.Sum.Handled), show.Count(c.Sum.Failed), show.Count(c.Sum.Dead))
	if most == 0 {
		return c
	}
	c.Most = show.Count(most) + " in " + show.Span(each)
	c.Axes = timesOf(t)
	c.Axes.Top, c.Axes.Middle = show.Count(most), half(most)
	for i, bar := range bars {
		width := 100 / float64(len(bars))
		c.Parts = append(c.Parts, stack(i, width, most, []part{{"handled", bar.Handled}, {"failed", bar.Failed}, {"dead", bar.Dead}})...)
		c.Columns = append(c.Columns, column(i, width, bar.At, each, fmt.Sprintf("%s handled, %s failed, %s dead, %s scheduled",
			show.Count(bar.Handled), show.Count(bar.Failed), show.Count(bar.Dead), show.Count(bar.Scheduled))))
	}
	return c
}

// NewLate draws the median and the 99th percentile of the lateness in bars of equal times: one
// timer of long ago does not change them. The scale is logarithmic, so that late timers do not
// hide the others.
func NewLate(t wakebelltype.Throughput) Late {
	bars, each := barsOf(t)
	c, highest := Late{Range: span(t)}, time.Millisecond
	var sum wakebelltype.ThroughputCounts
	for _, bar := range bars {
		sum.Add(bar)
		highest = max(highest, bar.LatenessQuantile(.99))
	}
	c.Started, c.Median, c.P99, c.Worst = sum.Started, sum.LatenessQuantile(.5), sum.LatenessQuantile(.99), sum.MaxLateness
	c.Label = fmt.Sprintf("Lateness of the last %s: median %s, 99 %% within %s, %s at worst", c.Range, show.Span(c.Median), show.Span(c.P99), show.Span(c.Worst))
	if c.Started == 0 {
		return c
	}
	scale := func(d time.Duration) float64 { return math.Log1p(d.Seconds() * 1000) }
	c.Axes = timesOf(t)
	c.Axes.Top = show.Span(rounded(highest))
	c.Axes.Middle = show.Span(rounded(time.Duration(math.Expm1(scale(highest)/2) * float64(time.Millisecond))))
	width := 100 / float64(len(bars))
	for i, bar := range bars {
		if bar.Started == 0 {
			continue
		}
		median, p99 := bar.LatenessQuantile(.5), bar.LatenessQuantile(.99)
		for _, part := range []struct {
			name string
			d    time.Duration
		}{{"p99", p99}, {"median", median}} {
			height := min(100, max(2, 100*scale(part.d)/scale(highest)))
			c.Parts = append(c.Parts, Part{part.name, text(float64(i) * width), text(100 - height), text(width * 0.8), text(height)})
		}
		c.Columns = append(c.Columns, column(i, width, bar.At, each, fmt.Sprintf("%s began, median %s late, 99 %% within %s, %s at worst",
			show.Count(bar.Started), show.Span(rounded(median)), show.Span(rounded(p99)), show.Span(rounded(bar.MaxLateness)))))
	}
	return c
}

// NewAhead draws a forecast: timers, and the runs of recurring schedules on top of them.
func NewAhead(f forecast.Forecast) (p Plot, runs int64) {
	p.Label = fmt.Sprintf("Next 24 hours: %s due", show.Count(f.Total))
	most := int64(0)
	for _, b := range f.Bars {
		most = max(most, b.Timers+b.Runs)
		runs += b.Runs
	}
	if most == 0 {
		return p, runs
	}
	p.Axes = Axes{Top: show.Count(most), Middle: half(most), Left: "now", Center: "in 12 h", Right: "in 24 h"}
	width := 100 / float64(len(f.Bars))
	for i, b := range f.Bars {
		p.Parts = append(p.Parts, stack(i, width, most, []part{{"handled", b.Timers}, {"runs", b.Runs}})...)
		p.Columns = append(p.Columns, column(i, width, b.At, 24*time.Hour/time.Duration(len(f.Bars)),
			fmt.Sprintf("%s, %s of recurring schedules", show.Things(b.Timers, "timer"), show.Things(b.Runs, "run"))))
	}
	return p, runs
}

// barsOf sums up the steps to at most MaxBars.
func barsOf(t wakebelltype.Throughput) (bars []wakebelltype.ThroughputCounts, each time.Duration) {
	n := max(1, (len(t.Points)+MaxBars-1)/MaxBars)
	for part := range slices.Chunk(t.Points, n) {
		bar := wakebelltype.ThroughputCounts{At: part[0].At}
		for _, p := range part {
			bar.Add(p)
		}
		bars = append(bars, bar)
	}
	return bars, time.Duration(n) * t.Step
}

// span writes for how long there are counts.
func span(t wakebelltype.Throughput) string {
	all := time.Duration(len(t.Points)) * t.Step
	for _, r := range Ranges {
		if r.Span == all {
			return r.Text
		}
	}
	if all == 0 {
		return Default.Text
	}
	return show.Span(all)
}

// timesOf are the instants below a chart, relative to its end.
func timesOf(t wakebelltype.Throughput) Axes {
	all := time.Duration(len(t.Points)) * t.Step
	return Axes{Left: show.Span(all) + " ago", Center: show.Span(all/2) + " ago", Right: "now"}
}

func column(bar int, width float64, from time.Time, each time.Duration, what string) Column {
	from = from.UTC()
	title := from.Format("Jan 2")
	if each < 24*time.Hour {
		title += from.Format(" 15:04–") + from.Add(each).Format("15:04 UTC")
	}
	return Column{text(float64(bar) * width), text(width), title + ": " + what}
}

// part is a number in a bar.
type part struct {
	name string
	n    int64
}

// stack puts the parts of a bar on each other, the first at the bottom.
func stack(bar int, width float64, most int64, parts []part) (drawn []Part) {
	bottom := 100.0
	for _, part := range parts {
		if part.n <= 0 {
			continue
		}
		height := max(2, 100*float64(part.n)/float64(most)) // one of many stays visible
		bottom = max(0, bottom-height)
		drawn = append(drawn, Part{part.name, text(float64(bar) * width), text(bottom), text(width * 0.8), text(height)})
	}
	return drawn
}

// half writes the half of a count, rounded down; a single thing has none.
func half(n int64) string {
	if n < 2 {
		return ""
	}
	return show.Count(n / 2)
}

// rounded leaves two digits or three of a duration.
func rounded(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}

func text(x float64) string { return strconv.FormatFloat(max(0, x), 'f', 2, 64) }
