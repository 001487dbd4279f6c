package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
)

// columns are the figures that a table of contenders shows, with their titles.
var columns = []struct{ figure, title string }{
	{rate, "per s"},
	{clientUS, "client µs"},
	{redisUS, "Redis µs"},
	{bothUS, "both µs"},
	{exchangesPer, "exchanges"},
	{commandsPer, "commands"},
	{allocsPer, "allocations"},
	{lateP50, "late p50, ms"},
	{lateP99, "late p99, ms"},
	{lateStartP99, "… at the start"},
	{lateMax, "late at most, ms"},
	{earlyOnes, "early"},
	{emptyPer, "empty exchanges"},
	{peeksPer, "peeks"},
	{fallbackPer, "by fallbacks"},
	{bytesPer, "bytes"},
	{clientMost, "client at most, MiB"},
	{wallUS, "elapsed µs"},
	{fewRedisUS, "Redis µs with 1 k"},
	{fewWallUS, "elapsed µs with 1 k"},
	{deepRedis, "Redis ×"},
	{deepWall, "elapsed ×"},
	{idleCommands, "commands/s a topic"},
	{idleCalls, "calls/s a topic"},
	{idleClient, "client, cores"},
	{idleRedis, "Redis, cores"},
	{idleBytes, "client bytes a topic"},
	{idleGoroutines, "goroutines a topic"},
	{idleConnections, "connections"},
	{othersBusy, "others busy"},
}

// report writes the results as Markdown: the goals first, then what each
// contender measured.
func (r *results) report(out io.Writer) error {
	var b strings.Builder
	node := ""
	if r.Host.Node != "" {
		node = ", Node " + r.Host.Node
	}
	fmt.Fprintf(&b, "%d cores (%s), %s, Redis %s%s; medians of %d rounds, scale %g, %.0f min.\n",
		r.Host.Cores, r.Host.CPU, r.Host.Go, r.Host.Redis, node, r.Rounds, r.Scale, math.Ceil(r.Took/60))
	b.WriteString("\n| what | must | aim | measured | reaches |\n|---|---|---|---|---|\n")
	for _, g := range goals {
		value := g.value(r)
		if math.IsNaN(value) {
			continue
		}
		sign := "≥"
		if g.atMost {
			sign = "≤"
		}
		fmt.Fprintf(&b, "| %s | %s %s | %s %s | %s %s | %s |\n",
			g.what, sign, number(g.must), sign, number(g.aim), digits(value), g.unit, g.verdict(value))
	}
	for _, t := range allTrials() {
		r.table(&b, t)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Absent)) {
		fmt.Fprintf(&b, "\n%s: %s.\n", name, r.Absent[name])
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// table writes what the contenders of a trial measured.
func (r *results) table(b *strings.Builder, t trial) {
	measured := r.Trials[t.name]
	if len(measured) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s: %s.\n\n| |", t.name, t.about)
	var shown []string
	for _, c := range columns {
		for _, figures := range measured {
			if len(figures[c.figure]) > 0 {
				shown = append(shown, c.figure)
				fmt.Fprintf(b, " %s |", c.title)
				break
			}
		}
	}
	b.WriteString("\n|---" + strings.Repeat("|---", len(shown)) + "|\n")
	for _, c := range t.contenders {
		if measured[c.name] == nil {
			continue
		}
		fmt.Fprintf(b, "| %s |", c.name)
		for _, name := range shown {
			fmt.Fprintf(b, " %s |", digits(r.median(t.name, c.name, name)))
		}
		b.WriteString("\n")
	}
}

// number writes a bound as it was given.
func number(x float64) string {
	if x >= 1000 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%g", x)
}
