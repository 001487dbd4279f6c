package incidents

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// alertRules are the alerts that are deployed.
const alertRules = "../../deploy/prometheus/alerts.yaml"

// shortFor replaces the duration for which an alert has to be true. A longer one belongs to
// operation, where a restart of a process must not wake people.
const shortFor = "${1}3s"

var forOf = regexp.MustCompile(`(?m)^( +for: )\S+$`)

// shortAge replaces the age from which a handler counts as stuck.
const shortAge = "${1}15"

var ageOf = regexp.MustCompile(`(wakebell_handler_oldest_age_seconds\) > )900`)

// hastened returns the deployed alerts without their patience.
func hastened(t *testing.T) []byte {
	t.Helper()
	rules, err := os.ReadFile(alertRules)
	require.NoError(t, err)
	require.True(t, forOf.Match(rules) && ageOf.Match(rules))
	return ageOf.ReplaceAll(forOf.ReplaceAll(rules, []byte(shortFor)), []byte(shortAge))
}

// withoutIncident are the alerts that no incident of the table asserts. promtool tests all of
// them (deploy/prometheus/alerts_test.yaml).
var withoutIncident = []string{
	"WakebellFewerNodes", "WakebellSchedulesOverdue", "WakebellLatenessHigh", "WakebellTimersLost", "WakebellLeasesLost",
	"WakebellPollerRestarts", "WakebellSchedulesLate", "WakebellGateHeld", "WakebellBacklogUnread", "WakebellMessagesLate",
	"WakebellClockStep", "WakebellOutboxLag", "WakebellJoinsLate",
}

func TestAlertsHaveIncidents(t *testing.T) {
	t.Parallel()
	rules, err := os.ReadFile(alertRules)
	require.NoError(t, err)
	var deployed []string
	for _, found := range regexp.MustCompile(`(?m)- alert: (\S+)$`).FindAllSubmatch(rules, -1) {
		deployed = append(deployed, string(found[1]))
	}
	asserted := slices.Clone(withoutIncident)
	for _, i := range table {
		asserted = append(asserted, i.alerts...)
	}
	slices.Sort(asserted)
	require.ElementsMatch(t, deployed, slices.Compact(asserted))
}

func TestIncidentsAreInRunbook(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	_, rows, found := strings.Cut(string(text), "| incident | sign | after | names the cause |\n|---|---|---|---|\n")
	require.True(t, found)
	rows, _, _ = strings.Cut(rows, "\n\n")
	var documented, produced []string
	for row := range strings.Lines(rows) {
		documented = append(documented, strings.Split(row, " | ")[0][len("| "):])
	}
	for _, i := range table {
		produced = append(produced, i.title)
	}
	require.Equal(t, produced, documented)
}
