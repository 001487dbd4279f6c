// Package promtest runs a real Prometheus for tests.
package promtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
)

// readyLimit bounds the start.
const readyLimit = 2 * time.Minute

// Server is a Prometheus that scrapes its targets, and evaluates its rules, every second.
type Server struct {
	t                testing.TB
	address, targets string
}

// Start runs a Prometheus with rules, if there are any, until the end of the test, and waits
// until it answers. It has no targets.
func Start(t testing.TB, rules []byte) *Server {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	require.NoError(t, err, "make setup installs it (Debian: apt-get install prometheus)")
	dir := t.TempDir()
	s := &Server{t, redistest.Address(t), filepath.Join(dir, "targets")}
	require.NoError(t, os.Mkdir(s.targets, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rules.yaml"), rules, 0o600))
	config := filepath.Join(dir, "prometheus.yaml")
	require.NoError(t, os.WriteFile(config, []byte("global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\n"+
		"rule_files: [rules.yaml]\n"+
		"scrape_configs: [{job_name: wakebell, file_sd_configs: [{files: [targets/*.json], refresh_interval: 1s}]}]\n"), 0o600))
	output := &redistest.Output{}
	command := exec.Command(program, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+s.address, "--log.level=warn")
	command.Stdout, command.Stderr, command.SysProcAttr = output, output, redistest.ChildAttr()
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait() // it was killed
		if t.Failed() {
			t.Logf("prometheus:\n%s", output)
		}
	})
	require.Eventually(t, s.ready, readyLimit, 50*time.Millisecond, "prometheus is ready")
	return s
}

func (s *Server) ready() bool {
	response, err := http.Get("http://" + s.address + "/-/ready")
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// Scrape adds the address of a target, which need not answer yet.
func (s *Server) Scrape(target string) {
	s.t.Helper()
	name := filepath.Join(s.targets, url.PathEscape(target))
	require.NoError(s.t, os.WriteFile(name+".part", fmt.Appendf(nil, `[{"targets": [%q]}]`, target), 0o600))
	require.NoError(s.t, os.Rename(name+".part", name+".json"))
}

// Query returns the values of an expression, as text, without those that are no numbers.
func (s *Server) Query(expression string) (values []string) {
	s.t.Helper()
	var data struct {
		Result []struct{ Value [2]any }
	}
	s.ask("query", url.Values{"query": {expression}}, &data)
	for _, each := range data.Result {
		if value := each.Value[1].(string); value != "NaN" {
			values = append(values, value)
		}
	}
	return values
}

// Series returns the labels of all series of a metric.
func (s *Server) Series(name string) (all []map[string]string) {
	s.t.Helper()
	s.ask("series", url.Values{"match[]": {name}}, &all)
	return all
}

// Kinds returns the types of the metrics that were scraped, by name.
func (s *Server) Kinds() map[string]string {
	s.t.Helper()
	var data map[string][]struct{ Type string }
	s.ask("metadata", nil, &data)
	kinds := map[string]string{}
	for name, all := range data {
		kinds[name] = all[0].Type
	}
	return kinds
}

// Alerts returns the states, pending or firing, of the active alerts by name. Of an alert with
// several labels it is firing if one of them is.
func (s *Server) Alerts() map[string]string {
	s.t.Helper()
	var data struct {
		Alerts []struct {
			Labels struct{ Alertname string }
			State  string
		}
	}
	s.ask("alerts", nil, &data)
	active := map[string]string{}
	for _, a := range data.Alerts {
		if active[a.Labels.Alertname] != "firing" {
			active[a.Labels.Alertname] = a.State
		}
	}
	return active
}

// ask decodes the data of an answer of the HTTP API.
func (s *Server) ask(path string, parameters url.Values, data any) {
	s.t.Helper()
	response, err := http.Get("http://" + s.address + "/api/v1/" + path + "?" + parameters.Encode())
	require.NoError(s.t, err)
	defer func() { _ = response.Body.Close() }()
	answer, body := struct{ Error string }{}, &bytes.Buffer{}
	_, err = body.ReadFrom(response.Body)
	require.NoError(s.t, err)
	require.NoError(s.t, json.Unmarshal(body.Bytes(), &answer))
	require.Empty(s.t, answer.Error, "%s %s", path, parameters.Encode())
	require.NoError(s.t, json.Unmarshal(body.Bytes(), &struct{ Data any }{data}))
}
