package faults

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// Report collects the judgements of all rounds by scenario.
type Report struct {
	mu   sync.Mutex
	rows map[string]*Row
}

// Row has the results of a scenario.
type Row struct {
	Scenario string
	Rounds   int
	Trials   int // injected faults, or other events that the scenario counts
	LeaseTTL time.Duration
	Judgement
	Failures []string // failed rounds, in addition to the violations
	Notes    []string // other figures
}

// NewReport returns an empty report.
func NewReport() *Report { return &Report{rows: map[string]*Row{}} }

// Add adds a round of a scenario.
func (r *Report) Add(scenario string, trials int, ttl time.Duration, j *Judgement) {
	r.mu.Lock()
	defer r.mu.Unlock()
	row := r.row(scenario)
	row.Rounds++
	row.Trials += trials
	row.LeaseTTL = ttl
	row.add(j)
}

// Failed records that a round of a scenario failed.
func (r *Report) Failed(scenario, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	row := r.row(scenario)
	row.Failures = append(row.Failures, reason)
}

// Note adds a figure that only this scenario has.
func (r *Report) Note(scenario, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	row := r.row(scenario)
	row.Notes = append(row.Notes, fmt.Sprintf(format, args...))
}

func (r *Report) row(scenario string) *Row {
	row := r.rows[scenario]
	if row == nil {
		row = &Row{Scenario: scenario}
		r.rows[scenario] = row
	}
	return row
}

// Rows returns the rows ordered by scenario.
func (r *Report) Rows() []*Row {
	r.mu.Lock()
	defer r.mu.Unlock()
	var rows []*Row
	for _, row := range r.rows {
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b *Row) int { return strings.Compare(a.Scenario, b.Scenario) })
	return rows
}

// columns are the columns of the table.
var columns = []struct {
	heading string
	value   func(*Row) string
}{
	{"scenario", func(r *Row) string { return r.Scenario }},
	{"rounds", func(r *Row) string { return strconv.Itoa(r.Rounds) }},
	{"trials", func(r *Row) string { return strconv.Itoa(r.Trials) }},
	{"scheduled", func(r *Row) string { return strconv.Itoa(r.Scheduled) }},
	{"lost", func(r *Row) string { return strconv.Itoa(r.Lost) }},
	{"lost by Redis", func(r *Row) string { return strconv.Itoa(r.LostByRedis) }},
	{"early", func(r *Row) string { return strconv.Itoa(r.Early) }},
	{"repeated", func(r *Row) string { return strconv.Itoa(r.Repeated) }},
	{"uncaused", func(r *Row) string { return strconv.Itoa(r.Uncaused) }},
	{"stale", func(r *Row) string { return strconv.Itoa(r.Stale) }},
	{"overlapping", func(r *Row) string { return strconv.Itoa(r.Overlapping) }},
	{"unseen", func(r *Row) string { return strconv.Itoa(r.Undelivered) }},
	{"unordered", func(r *Row) string { return strconv.Itoa(r.Unordered) }},
	{"over a limit", func(r *Row) string { return strconv.Itoa(r.Exceeded) }},
	{"illegal", func(r *Row) string { return strconv.Itoa(r.Illegal) }},
	{"recovery p50", func(r *Row) string { return r.recovery(0.5) }},
	{"p99", func(r *Row) string { return r.recovery(0.99) }},
	{"lease", func(r *Row) string { return r.LeaseTTL.String() }},
	{"3/N", (*Row).bound},
}

// bound returns the upper bound, at 95 %, of the rate of an event that did not
// occur in that many timers.
func (r *Row) bound() string {
	if r.Broken() > 0 || r.Scheduled == 0 {
		return "-"
	}
	return strconv.FormatFloat(3/float64(r.Scheduled), 'e', 1, 64)
}

func (r *Row) recovery(quantile float64) string {
	if len(r.Recovery) == 0 {
		return "-"
	}
	return r.quantile(quantile).Round(time.Millisecond).String()
}

func (r *Row) quantile(q float64) time.Duration {
	if len(r.Recovery) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(r.Recovery))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// causes lists the causes of repeats by frequency.
func (r *Row) causes() string {
	var names []Cause
	for cause := range r.Causes {
		names = append(names, cause)
	}
	slices.SortFunc(names, func(a, b Cause) int { return r.Causes[b] - r.Causes[a] })
	parts := make([]string, len(names))
	for i, cause := range names {
		parts[i] = fmt.Sprintf("%s %d", cause, r.Causes[cause])
	}
	return strings.Join(parts, ", ")
}

// divided describes what two masters at a time did, if clients waited for replicas.
func (r *Row) divided() (notes []string) {
	if len(r.Confirmed) < 2 {
		return nil
	}
	for _, n := range slices.Sorted(maps.Keys(r.Confirmed)) {
		notes = append(notes, fmt.Sprintf("timers that %d replicas had to confirm: %d acknowledged, %d of them lost", n, r.Confirmed[n], r.LostConfirmed[n]))
	}
	return append(notes, fmt.Sprintf("%d handlers ran beside the next one of their timer, on the other master", r.Twice))
}

// recoveries describes the recovery times by cause, if there is more than one cause.
func (r *Row) recoveries() (notes []string) {
	if len(r.RecoveryBy) < 2 {
		return nil
	}
	for _, cause := range slices.Sorted(maps.Keys(r.RecoveryBy)) {
		notes = append(notes, fmt.Sprintf("recovery, %s: %s", cause, spread(r.RecoveryBy[cause])))
	}
	return notes
}

// WriteText writes the table as text, then the causes of repeats and the
// violations.
func (r *Report) WriteText(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	var cells []string
	for _, c := range columns {
		cells = append(cells, c.heading)
	}
	_, _ = fmt.Fprintln(table, strings.Join(cells, "\t")) // Flush reports it
	for _, row := range r.Rows() {
		cells = cells[:0]
		for _, c := range columns {
			cells = append(cells, c.value(row))
		}
		_, _ = fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return r.writeNotes(w)
}

func (r *Report) writeNotes(w io.Writer) error {
	var b strings.Builder
	for _, row := range r.Rows() {
		if row.Repeated > 0 {
			fmt.Fprintf(&b, "%s: repeats by cause: %s\n", row.Scenario, row.causes())
		}
	}
	for _, row := range r.Rows() {
		for _, note := range slices.Concat(row.recoveries(), row.divided(), row.Notes) {
			fmt.Fprintf(&b, "%s: %s\n", row.Scenario, note)
		}
	}
	for _, row := range r.Rows() {
		for _, failure := range append(row.Failures, row.Violations...) {
			fmt.Fprintf(&b, "FAIL %s: %s\n", row.Scenario, failure)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteMarkdown writes the tables from which docs/guarantees.md is made.
func (r *Report) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	for i, c := range columns {
		fmt.Fprintf(&b, "| %s ", c.heading)
		if i == len(columns)-1 {
			b.WriteString("|\n" + strings.Repeat("|---", len(columns)) + "|\n")
		}
	}
	for _, row := range r.Rows() {
		for _, c := range columns {
			fmt.Fprintf(&b, "| %s ", c.value(row))
		}
		b.WriteString("|\n")
	}
	b.WriteString("\n| scenario | deliveries | repeats by cause |\n|---|---|---|\n")
	for _, row := range r.Rows() {
		fmt.Fprintf(&b, "| %s | %d | %s |\n", row.Scenario, row.Deliveries, row.causes())
	}
	for _, row := range r.Rows() {
		for _, note := range slices.Concat(row.recoveries(), row.divided(), row.Notes) {
			fmt.Fprintf(&b, "\n%s: %s.\n", row.Scenario, note)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteJSON writes a line with a JSON object for each scenario.
func (r *Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	for _, row := range r.Rows() {
		err := enc.Encode(map[string]any{
			"scenario": row.Scenario, "rounds": row.Rounds, "trials": row.Trials,
			"timers": row.Timers, "scheduled": row.Scheduled, "deliveries": row.Deliveries,
			"lost": row.Lost, "lost_by_redis": row.LostByRedis, "early": row.Early,
			"repeated": row.Repeated, "causes": row.Causes, "uncaused": row.Uncaused,
			"stale": row.Stale, "undelivered_claims": row.Undelivered,
			"unordered": row.Unordered, "exceeded": row.Exceeded, "illegal": row.Illegal,
			"recovery_p50_ms": row.quantile(0.5).Milliseconds(), "recovery_p99_ms": row.quantile(0.99).Milliseconds(),
			"lease_ttl_ms": row.LeaseTTL.Milliseconds(), "upper_bound_95": row.bound(),
			"notes": row.Notes, "violations": row.Violations, "failures": row.Failures,
		})
		if err != nil {
			return err
		}
	}
	return nil
}
