package telemetry_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/promtest"
)

const root = "../../../../"

// A real Prometheus scrapes a real node that does everything: every metric of
// docs/metrics.md appears as documented, and every panel of deploy/grafana has data.
func TestPrometheusScrapesWhatPageSays(t *testing.T) {
	began := time.Now()
	n := startNode(t)
	p := promtest.Start(t, nil)
	p.Scrape(n.metrics)
	n.loop(t)
	n.incidents(t)
	n.outage(t)
	t.Logf("everything was done after %v", time.Since(began))
	for _, row := range documented(t) {
		if !strings.HasPrefix(row.name, "wakebell_outbox_") { // they need a database
			row.check(t, p)
		}
	}
	for _, panel := range panels(t) {
		require.Eventually(t, func() bool { return len(p.Query(panel.expression)) > 0 }, patience, 200*time.Millisecond,
			"%s: %s", panel.name, panel.expression)
	}
}

// documented are the rows of docs/metrics.md.
func documented(t *testing.T) (rows []metricRow) {
	t.Helper()
	text, err := os.ReadFile(root + "docs/metrics.md")
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) != 6 || !strings.HasPrefix(cells[0], "| `") {
			continue
		}
		row := metricRow{name: strings.Trim(cells[1], "`"), kind: cells[2], unit: cells[3]}
		for _, label := range strings.Fields(cells[4]) {
			optional := strings.HasSuffix(label, "?")
			if label = strings.Trim(label, "`?"); optional {
				row.optional = append(row.optional, label)
			} else {
				row.labels = append(row.labels, label)
			}
		}
		rows = append(rows, row)
	}
	require.Greater(t, len(rows), 40)
	return rows
}

type metricRow struct {
	name, kind, unit string
	labels, optional []string
}

// neverCounted are the counters that the run does not raise, and which then have no
// series: it cannot break a poller, a prefetch is returned only if handlers become slow at the
// right moment, a node that is alone divides its topics with no other, and no key is
// deleted by hand. Tests of package actors and of the whole stack raise them.
var neverCounted = []string{
	"wakebell_poller_restarts_total", "wakebell_prefetch_returned_total",
	"wakebell_deliveries_fallback_total", "wakebell_help_requests_total",
	"wakebell_dead_letters_payload_missing_total", "wakebell_orphans_removed_total",
}

// seldomSet are the gauges without a series as long as they are 0, which the run does not
// raise for long. Tests of internal/metrics raise them.
var seldomSet = []string{
	"wakebell_topic_fault", "wakebell_topic_paused", "wakebell_backlog_parked", "wakebell_backlog_retrying", "wakebell_breaker_open",
	"wakebell_concurrency_limit", "wakebell_division_role", "wakebell_orphans_held",
}

func (m metricRow) check(t *testing.T, p *promtest.Server) {
	t.Helper()
	if slices.Contains(neverCounted, m.name) || slices.Contains(seldomSet, m.name) {
		return
	}
	series := m.name
	switch {
	case m.kind == "histogram":
		series += "_count"
	case m.unit == "s":
		require.True(t, strings.HasSuffix(m.name, "_seconds"), m.name)
	case m.unit == "By":
		require.True(t, strings.HasSuffix(strings.TrimSuffix(m.name, "_total"), "_bytes"), m.name)
	}
	condition := series
	if m.kind != "gauge" && m.name != "wakebell_redis_clock_steps_total" { // it cannot set the clock of Redis
		condition += " > 0"
	}
	require.Eventually(t, func() bool { return len(p.Query(condition)) > 0 }, patience, 200*time.Millisecond, condition)
	require.Equal(t, m.kind, p.Kinds()[m.name], m.name)
	for _, labels := range p.Series(series) {
		var names []string
		for name := range labels {
			if !slices.Contains([]string{"__name__", "instance", "job"}, name) && !slices.Contains(m.optional, name) {
				names = append(names, name)
			}
		}
		// Prometheus has no label for an empty value, which that of the shard is.
		require.ElementsMatch(t, slices.DeleteFunc(slices.Clone(m.labels), func(l string) bool { return l == "wakebell_shard" }), names, "labels of %s", m.name)
	}
}

type panelQuery struct{ name, expression string }

var variable = regexp.MustCompile(`\$(topic|gate|instance)\b`)

// panels are the expressions of all dashboards, with variables that select everything.
func panels(t *testing.T) (all []panelQuery) {
	t.Helper()
	files, err := filepath.Glob(root + "deploy/grafana/*.json")
	require.NoError(t, err)
	require.Len(t, files, 5)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var board struct {
			Title  string
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
		}
		require.NoError(t, json.Unmarshal(text, &board), file)
		for _, panel := range board.Panels {
			for _, target := range panel.Targets {
				expression := variable.ReplaceAllString(strings.ReplaceAll(target.Expr, "$__rate_interval", "1m"), ".*")
				require.NotContains(t, expression, "$", "a variable that the test does not know")
				all = append(all, panelQuery{board.Title + ", " + panel.Title, expression})
			}
		}
	}
	return all
}

// promtool tests the rules, and every alert has a section in docs/operations.md.
func TestAlertsAreTestedAndExplained(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("promtool")
	require.NoError(t, err, "make setup installs it (Debian: apt-get install prometheus)")
	command := exec.Command(program, "test", "rules", "alerts_test.yaml")
	command.Dir = root + "deploy/prometheus"
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)

	rules, tests, page := read(t, "deploy/prometheus/alerts.yaml"), read(t, "deploy/prometheus/alerts_test.yaml"), read(t, "docs/operations.md")
	alerts := regexp.MustCompile(`(?m)^ *- alert: (\w+)$`).FindAllStringSubmatch(rules, -1)
	require.NotEmpty(t, alerts)
	var names, sections []string
	for _, alert := range alerts {
		names = append(names, alert[1])
		require.Contains(t, rules, "docs/operations.md#"+strings.ToLower(alert[1])+"\n", "its runbook_url")
		require.Regexp(t, `alertname: `+alert[1]+`\n +exp_alerts:`, tests, "a test in which it fires")
	}
	for _, section := range regexp.MustCompile(`(?m)^#### (Wakebell\w+)$`).FindAllStringSubmatch(page, -1) {
		sections = append(sections, section[1])
	}
	require.ElementsMatch(t, names, sections)
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(root + path)
	require.NoError(t, err)
	return string(text)
}
