package faults

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// logLine is a line of a delivery log that was written: the first has the settings, each of
// the others a fault or everything about an id.
type logLine struct {
	Scenario    string        `json:"scenario,omitempty"`
	TTL         time.Duration `json:"ttl,omitempty"`
	AtLeastOnce bool          `json:"at_least_once,omitempty"`

	Fault  *Fault   `json:"fault,omitempty"`
	Timer  *Timer   `json:"timer,omitempty"`
	Errors []string `json:"errors,omitempty"` // of its calls
}

// WriteLog writes the delivery log of a scenario, a JSON object in each line.
func (l *DeliveryLog) WriteLog(w io.Writer, scenario string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	enc := json.NewEncoder(w)
	if err := enc.Encode(logLine{Scenario: scenario, TTL: l.TTL, AtLeastOnce: l.AtLeastOnce}); err != nil {
		return err
	}
	for i := range l.faults {
		if err := enc.Encode(logLine{Fault: &l.faults[i]}); err != nil {
			return err
		}
	}
	ids := make([]string, 0, len(l.timers))
	for id := range l.timers {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		line := logLine{Timer: l.timers[id]}
		for _, c := range line.Timer.Calls {
			text := ""
			if c.Err != nil {
				text = c.Err.Error()
			}
			line.Errors = append(line.Errors, text)
		}
		if err := enc.Encode(line); err != nil {
			return err
		}
	}
	return nil
}

// ReadLogs reads delivery logs that WriteLog has written, one after the other, and passes each
// on.
func ReadLogs(r io.Reader, each func(scenario string, l *DeliveryLog)) error {
	dec := json.NewDecoder(r)
	scenario, log := "", (*DeliveryLog)(nil)
	for n := 1; ; n++ {
		var line logLine
		switch err := dec.Decode(&line); {
		case errors.Is(err, io.EOF):
			if log != nil {
				each(scenario, log)
			}
			return nil
		case err != nil:
			return fmt.Errorf("delivery log, line %d: %w", n, err)
		case line.Scenario != "":
			if log != nil {
				each(scenario, log)
			}
			scenario, log = line.Scenario, NewDeliveryLog(line.TTL)
			log.AtLeastOnce = line.AtLeastOnce
		case log == nil:
			return fmt.Errorf("delivery log, line %d: it does not begin with the name of a scenario", n)
		case line.Fault != nil:
			log.faults = append(log.faults, *line.Fault)
		case line.Timer != nil:
			for i, text := range line.Errors {
				if text != "" && i < len(line.Timer.Calls) {
					line.Timer.Calls[i].Err = errors.New(text)
				}
			}
			log.timers[line.Timer.ID] = line.Timer
		}
	}
}
