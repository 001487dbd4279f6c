package timers

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// maxReport is the length of a report in bytes from which it is not stored or not read.
const maxReport = 4 << 10

// Report stores the state of a node for a topic, for as long as life; 0 removes it. Errors
// are those of Exchange.
func (t *TimerSource) Report(ctx context.Context, node string, state wakebelltype.NodeState, life time.Duration) error {
	report, err := json.Marshal(state)
	if err == nil && len(report) > maxReport {
		err = fmt.Errorf("%d bytes, at most %d", len(report), maxReport)
	}
	if err == nil {
		_, err = t.timers.RunText(ctx, reportScript, []string{t.keys.Reports}, node, life.Milliseconds(), string(report))
	}
	if err != nil {
		return fmt.Errorf("report of %q on %q: %w", node, t.topic, err)
	}
	return nil
}

// reportsOf reads the reports of nodes that are valid at an instant, sorted by node. What
// cannot be read is left out.
func reportsOf(fields map[string]string, now time.Time) (reports []wakebelltype.NodeReport) {
	for _, node := range slices.Sorted(maps.Keys(fields)) {
		until, text, _ := strings.Cut(fields[node], " ")
		at, err := scripts.ReadScore(until)
		if err != nil || len(text) > maxReport || !scripts.Instant(at).After(now) {
			continue
		}
		r := wakebelltype.NodeReport{Node: node}
		if json.Unmarshal([]byte(text), &r.State) == nil {
			reports = append(reports, r)
		}
	}
	return reports
}
