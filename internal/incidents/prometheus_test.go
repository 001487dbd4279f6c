package incidents

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
)

// shortFor replaces the duration for which an alert has to be true. A longer one belongs to
// operation, where a restart of a process must not wake people.
const shortFor = "${1}3s"

var forOf = regexp.MustCompile(`(?m)^( +for: )\S+$`)

// shortAge replaces the age from which a handler counts as stuck.
const shortAge = "${1}15"

var ageOf = regexp.MustCompile(`(wakebell_handler_oldest_age_seconds\) > )900`)

// hastened returns rules that fire without the patience of those that are deployed.
func hastened(t *testing.T, rules []byte) []byte {
	t.Helper()
	require.True(t, forOf.Match(rules) && ageOf.Match(rules))
	return ageOf.ReplaceAll(forOf.ReplaceAll(rules, []byte(shortFor)), []byte(shortAge))
}

// prometheus is a real Prometheus with the alerts of deploy/prometheus.
type prometheus struct{ address, targets string }

// startPrometheus runs a Prometheus without targets until the end of the test; begin waits
// for it.
func startPrometheus(t *testing.T) prometheus {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	require.NoError(t, err, "make setup installs it (Debian: apt-get install prometheus)")
	rules, err := os.ReadFile("../../deploy/prometheus/alerts.yaml")
	require.NoError(t, err)
	in, p := t.TempDir(), prometheus{address: redistest.Address(t)}
	p.targets = filepath.Join(in, "targets")
	require.NoError(t, os.Mkdir(p.targets, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(in, "alerts.yaml"), hastened(t, rules), 0o600))
	config := filepath.Join(in, "prometheus.yaml")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, "global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\n"+
		"rule_files: [alerts.yaml]\nscrape_configs: [{job_name: wakebell, file_sd_configs: [{files: [targets/*.json], refresh_interval: 1s}]}]\n"), 0o600))
	output := &lockedBuffer{}
	command := exec.Command(program, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(in, "data"),
		"--web.listen-address="+p.address, "--log.level=warn")
	command.Stdout, command.Stderr, command.SysProcAttr = output, output, redistest.ChildAttr()
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait() // it was killed
		if t.Failed() {
			t.Logf("prometheus:\n%s", output)
		}
	})
	return p
}

// scrape adds a target.
func (p prometheus) scrape(t *testing.T, target string) {
	t.Helper()
	name := filepath.Join(p.targets, strings.NewReplacer(":", "-", "[", "", "]", "").Replace(target))
	require.NoError(t, os.WriteFile(name+".part", fmt.Appendf(nil, `[{"targets": [%q]}]`, target), 0o600))
	require.NoError(t, os.Rename(name+".part", name+".json"))
}

// begin waits until it answers.
func (p prometheus) begin(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		response, err := http.Get("http://" + p.address + "/-/ready")
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	}, startLimit, 100*time.Millisecond, "prometheus is ready")
}

// ask decodes the data of an answer of the HTTP API.
func (p prometheus) ask(t *testing.T, path string, data any) {
	t.Helper()
	response, err := http.Get("http://" + p.address + "/api/v1/" + path)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	require.NoError(t, json.NewDecoder(response.Body).Decode(&struct{ Data any }{data}))
}

// value returns the first value of an expression; empty: it has none.
func (p prometheus) value(t *testing.T, expression string) string {
	t.Helper()
	var data struct {
		Result []struct{ Value [2]any }
	}
	p.ask(t, "query?"+url.Values{"query": {expression}}.Encode(), &data)
	if len(data.Result) == 0 {
		return ""
	}
	return data.Result[0].Value[1].(string)
}

// alerts returns the states of the active alerts: pending or firing.
func (p prometheus) alerts(t *testing.T) map[string]string {
	t.Helper()
	var data struct {
		Alerts []struct {
			Labels struct{ Alertname string }
			State  string
		}
	}
	p.ask(t, "alerts", &data)
	active := map[string]string{}
	for _, a := range data.Alerts {
		if active[a.Labels.Alertname] != "firing" {
			active[a.Labels.Alertname] = a.State
		}
	}
	return active
}
