package topics

import (
	"time"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/wakebelltype"
)

// maxSince is how far back --since reaches.
const maxSince = 90 * 24 * time.Hour

// throughputLine has the JSON fields of the throughput of a topic.
type throughputLine struct {
	StepS     float64 `json:"step_s"`
	From      string  `json:"from"`
	Scheduled []int64 `json:"scheduled"`
	Handled   []int64 `json:"handled"`
	Failed    []int64 `json:"failed"`
	Dead      []int64 `json:"dead"`
}

func newThroughputLine(t wakebelltype.Throughput) *throughputLine {
	l := &throughputLine{StepS: t.Step.Seconds()}
	for i, p := range t.Points {
		if i == 0 {
			l.From = output.Stamp(p.At)
		}
		l.Scheduled, l.Handled = append(l.Scheduled, p.Scheduled), append(l.Handled, p.Handled)
		l.Failed, l.Dead = append(l.Failed, p.Failed), append(l.Dead, p.Dead)
	}
	return l
}

// sparkWidth is how many bars a sparkline has at most.
const sparkWidth = 30

// cells are the cells of a row of stats; without a throughput they are empty.
func (l *throughputLine) cells(screen output.Screen) []string {
	if l == nil {
		return []string{"", "", "", ""}
	}
	all := []string{}
	for _, counts := range [][]int64{l.Handled, l.Failed, l.Dead} {
		sum := int64(0)
		for _, n := range counts {
			sum += n
		}
		all = append(all, screen.Count(sum))
	}
	return append(all, output.Sparkline(l.Handled, sparkWidth))
}
