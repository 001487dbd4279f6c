package metrics

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
)

var update = flag.Bool("update", false, "write the tables of docs/metrics.md")

const (
	page  = "../../docs/metrics.md"
	begin = "<!-- Generated from internal/metrics/table.go by go test ./internal/metrics -run Page -update. -->\n"
	end   = "<!-- End of what is generated. -->\n"
)

// docs/metrics.md has the table of all metrics.
func TestPageListsAllMetrics(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), begin)
	require.True(t, found, "the page has the line %q", begin)
	_, after, found := strings.Cut(rest, end)
	require.True(t, found, "the page has the line %q", end)
	want := before + begin + "\n" + tables() + end + after
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o600))
		return
	}
	require.Equal(t, want, string(text), "run go test ./internal/metrics -run Page -update")
}

func tables() string {
	var b strings.Builder
	group := ""
	for _, i := range Table {
		if i.Group != group {
			group = i.Group
			fmt.Fprintf(&b, "### %s\n\n| metric | in Prometheus | type | unit | labels | meaning |\n|---|---|---|---|---|---|\n", group)
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s | %s | %s |\n", i.Name, prometheusName(i), i.Kind, i.Unit, labelsOf(i), i.Description)
		if last(i) {
			b.WriteString("\n")
		}
	}
	b.WriteString("### Labels\n\n| label | in Prometheus | values |\n|---|---|---|\n")
	for _, l := range Labels {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", l.Key, underscores(string(l.Key)), l.Text)
	}
	b.WriteString("\n")
	return b.String()
}

// last reports whether a metric is the last of its group.
func last(i Instrument) bool {
	for at := range Table {
		if Table[at].Name == i.Name {
			return at+1 == len(Table) || Table[at+1].Group != i.Group
		}
	}
	return false
}

func labelsOf(i Instrument) string {
	var all []string
	for _, key := range i.Labels {
		all = append(all, "`"+underscores(string(key))+"`")
	}
	for _, key := range i.Optional {
		all = append(all, "`"+underscores(string(key))+"`?")
	}
	return strings.Join(all, " ")
}

func underscores(name string) string { return strings.ReplaceAll(name, ".", "_") }

// prometheusName is the name that the exporter for Prometheus derives.
func prometheusName(i Instrument) string {
	name := underscores(i.Name)
	switch i.Unit {
	case "s":
		name += "_seconds"
	case "By":
		name += "_bytes"
	}
	if i.Kind == KindCounter {
		name += "_total"
	}
	return name
}

// Every metric has a unit and a description, and its labels are described; an id is
// never a label.
func TestTableIsComplete(t *testing.T) {
	t.Parallel()
	described := map[attribute.Key]bool{}
	for _, l := range Labels {
		require.NotEmpty(t, l.Text, l.Key)
		described[l.Key] = true
	}
	names := map[string]bool{}
	for _, i := range Table {
		require.False(t, names[i.Name], "%s is defined twice", i.Name)
		names[i.Name] = true
		require.NotEmpty(t, i.Unit, i.Name)
		require.True(t, strings.HasSuffix(i.Description, "."), "the description of %s is a sentence", i.Name)
		for _, key := range append(i.Labels, i.Optional...) {
			require.True(t, described[key], "the label %s of %s is described", key, i.Name)
			require.NotContains(t, string(key), "id", "ids are no labels")
		}
	}
}
