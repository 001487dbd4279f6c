package cli

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/wakebelltype"
)

// maxSince is how far back --since reaches.
const maxSince = 90 * 24 * time.Hour

// ThroughputFlag adds the flag --since of commands that show a throughput; 0 shows
// none.
func ThroughputFlag(flags *pflag.FlagSet, since *time.Duration) {
	DurationVar(flags, since, "since", 0, "show what was handled in this `duration` until now, up to 90d; 0: not")
}

// CheckThroughput checks the value of --since.
func CheckThroughput(since time.Duration) error {
	if since != 0 && (since < time.Minute || since > maxSince) {
		return Usagef("--since: %v, want 1m to 90d", since)
	}
	return nil
}

// ThroughputLine has the JSON fields of the throughput of a topic or a queue.
type ThroughputLine struct {
	StepS     float64 `json:"step_s"`
	From      string  `json:"from"`
	Scheduled []int64 `json:"scheduled,omitempty"` // of a topic
	Published []int64 `json:"published,omitempty"` // of a queue
	Handled   []int64 `json:"handled"`
	Failed    []int64 `json:"failed"`
	Dead      []int64 `json:"dead"`

	LatenessP50S []float64 `json:"lateness_p50_s"`
	LatenessP99S []float64 `json:"lateness_p99_s"`

	all wakebelltype.ThroughputCounts // the sum of all steps
}

// NewThroughputLine returns the fields of the throughput of a topic.
func NewThroughputLine(t wakebelltype.Throughput) *ThroughputLine {
	l := &ThroughputLine{StepS: t.Step.Seconds()}
	for i, p := range t.Points {
		if i == 0 {
			l.From = output.Stamp(p.At)
		}
		l.Scheduled, l.Handled = append(l.Scheduled, p.Scheduled), append(l.Handled, p.Handled)
		l.Failed, l.Dead = append(l.Failed, p.Failed), append(l.Dead, p.Dead)
		l.LatenessP50S = append(l.LatenessP50S, p.LatenessQuantile(.5).Seconds())
		l.LatenessP99S = append(l.LatenessP99S, p.LatenessQuantile(.99).Seconds())
		l.all.Add(p)
	}
	return l
}

// NewQueueThroughputLine returns the fields of the throughput of a queue.
func NewQueueThroughputLine(t wakebelltype.Throughput) *ThroughputLine {
	l := NewThroughputLine(t)
	l.Published, l.Scheduled = l.Scheduled, nil
	return l
}

// ThroughputColumns are the columns of Cells.
func ThroughputColumns() []output.Column {
	return []output.Column{output.Numeric("HANDLED"), output.Numeric("FAILED"), output.Numeric("DIED"), output.Numeric("LATE P50"), output.Numeric("LATE P99"), output.Short("THROUGHPUT")}
}

// Cells are cells of a row; without a throughput they are empty.
func (l *ThroughputLine) Cells(screen output.Screen) []string {
	if l == nil {
		return []string{"", "", "", "", "", ""}
	}
	all := []string{}
	for _, counts := range [][]int64{l.Handled, l.Failed, l.Dead} {
		all = append(all, screen.Count(sum(counts)))
	}
	return append(all, l.late(.5), l.late(.99), l.sparkline())
}

// Rows are the rows of a description of a queue.
func (l *ThroughputLine) Rows(screen output.Screen) [][2]string {
	return [][2]string{
		{"since", l.From},
		{"published", screen.Count(sum(l.Published))},
		{"handled", screen.Count(sum(l.Handled))},
		{"attempts failed", screen.Count(sum(l.Failed))},
		{"died", screen.Count(sum(l.Dead))},
		{"late p50", l.late(.5)},
		{"late p99", l.late(.99)},
		{"throughput", l.sparkline()},
	}
}

// late writes a quantile of the lateness of all steps; empty if nothing began.
func (l *ThroughputLine) late(q float64) string {
	if l.all.Started == 0 {
		return ""
	}
	late := l.all.LatenessQuantile(q)
	if late >= time.Second {
		return late.Round(100 * time.Millisecond).String()
	}
	return late.Round(10 * time.Microsecond).String()
}

// sparkline draws what was handled, with at most 30 bars.
func (l *ThroughputLine) sparkline() string { return output.Sparkline(l.Handled, 30) }

func sum(counts []int64) (n int64) {
	for _, c := range counts {
		n += c
	}
	return n
}
