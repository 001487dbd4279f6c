package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// results has the results of a run.
type results struct {
	Began  time.Time `json:"began"`
	Took   float64   `json:"took_s"`
	Rounds int       `json:"rounds"`
	Scale  float64   `json:"scale"`
	Only   string    `json:"only,omitempty"`
	Host   machine   `json:"machine"`

	// Trials holds the figures: trial, contender, figure, a value per round.
	Trials map[string]map[string]map[string][]float64 `json:"trials"`
	// Absent has the reasons why contenders could not run.
	Absent map[string]string `json:"absent,omitempty"`
}

// machine describes a machine, without its host name.
type machine struct {
	CPU   string `json:"cpu"`
	Cores int    `json:"cores"`
	Go    string `json:"go"`
	Redis string `json:"redis"`
	Node  string `json:"node,omitempty"`
}

func thisMachine(redisVersion, nodeVersion string) machine {
	m := machine{CPU: runtime.GOARCH, Cores: runtime.NumCPU(), Go: runtime.Version(), Redis: redisVersion, Node: nodeVersion}
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return m
	}
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			m.CPU = strings.TrimSpace(value)
			break
		}
	}
	return m
}

// add keeps a sample.
func (r *results) add(trial, contender string, s sample) {
	if r.Trials == nil {
		r.Trials = map[string]map[string]map[string][]float64{}
	}
	if r.Trials[trial] == nil {
		r.Trials[trial] = map[string]map[string][]float64{}
	}
	if r.Trials[trial][contender] == nil {
		r.Trials[trial][contender] = map[string][]float64{}
	}
	for figure, value := range s {
		r.Trials[trial][contender][figure] = append(r.Trials[trial][contender][figure], value)
	}
}

func (r *results) absent(contender, reason string) {
	if r.Absent == nil {
		r.Absent = map[string]string{}
	}
	r.Absent[contender] = reason
}

// values returns the value of each round; none if it was not measured.
func (r *results) values(trial, contender, figure string) []float64 {
	return r.Trials[trial][contender][figure]
}

func (r *results) median(trial, contender, figure string) float64 {
	return median(r.values(trial, contender, figure))
}

// best returns the contender with the highest rate among those with a prefix.
func (r *results) best(trial, prefix string) (name string) {
	highest := 0.0
	for contender := range r.Trials[trial] {
		if m := r.median(trial, contender, rate); strings.HasPrefix(contender, prefix) && m > highest {
			name, highest = contender, m
		}
	}
	return name
}

func (r *results) write(path string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

func readResults(path string) (*results, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &results{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return r, nil
}

// median of numbers in any order; NaN of none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// quantile of sorted numbers: the least that a share q of them does not exceed.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	return sorted[min(max(int(math.Ceil(q*float64(len(sorted))))-1, 0), len(sorted)-1)]
}

// medianRatio is the median of the quotients of two lists, round by round: what
// slows the machine down in a round slows both.
func medianRatio(above, below []float64) float64 {
	var quotients []float64
	for i := range min(len(above), len(below)) {
		if below[i] != 0 {
			quotients = append(quotients, above[i]/below[i])
		}
	}
	return median(quotients)
}
