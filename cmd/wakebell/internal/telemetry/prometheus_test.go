package telemetry_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
)

// patience bounds the waits for other processes.
const patience = 60 * time.Second

// prometheus is a real Prometheus that scrapes an address every second.
type prometheus struct{ address string }

// startPrometheus runs a Prometheus until the end of the test.
func startPrometheus(t *testing.T, target string) prometheus {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	require.NoError(t, err, "make setup installs it (Debian: apt-get install prometheus)")
	dir, address := t.TempDir(), redistest.Address(t)
	config := filepath.Join(dir, "prometheus.yaml")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil,
		"global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs: [{job_name: wakebell, static_configs: [{targets: [%q]}]}]\n", target), 0o600))
	output := &lockedBuffer{}
	command := exec.Command(program, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address, "--log.level=warn")
	command.Stdout, command.Stderr, command.SysProcAttr = output, output, redistest.ChildAttr()
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait() // it was killed
		if t.Failed() {
			t.Logf("prometheus:\n%s", output)
		}
	})
	p := prometheus{address}
	require.Eventually(t, func() bool {
		response, err := http.Get("http://" + address + "/-/ready")
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	}, patience, 50*time.Millisecond, "prometheus is ready")
	return p
}

// ask decodes the data of an answer of the HTTP API.
func (p prometheus) ask(t *testing.T, path string, parameters url.Values, data any) {
	t.Helper()
	response, err := http.Get("http://" + p.address + "/api/v1/" + path + "?" + parameters.Encode())
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	answer := struct{ Error string }{}
	body := &bytes.Buffer{}
	_, err = body.ReadFrom(response.Body)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(body.Bytes(), &answer))
	require.Empty(t, answer.Error, parameters)
	require.NoError(t, json.Unmarshal(body.Bytes(), &struct{ Data any }{data}))
}

// query returns the values of an expression, as text, without those that are no
// numbers.
func (p prometheus) query(t *testing.T, expression string) (values []string) {
	t.Helper()
	var data struct {
		Result []struct{ Value [2]any }
	}
	p.ask(t, "query", url.Values{"query": {expression}}, &data)
	for _, each := range data.Result {
		if value := each.Value[1].(string); value != "NaN" {
			values = append(values, value)
		}
	}
	return values
}

// series returns the labels of all series of a metric.
func (p prometheus) series(t *testing.T, name string) (all []map[string]string) {
	t.Helper()
	p.ask(t, "series", url.Values{"match[]": {name}}, &all)
	return all
}

// kinds returns the types of the metrics that were scraped.
func (p prometheus) kinds(t *testing.T) map[string]string {
	t.Helper()
	var data map[string][]struct{ Type string }
	p.ask(t, "metadata", nil, &data)
	kinds := map[string]string{}
	for name, all := range data {
		kinds[name] = all[0].Type
	}
	return kinds
}

// lockedBuffer is what a process writes.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
