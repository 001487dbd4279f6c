package wakebell

import (
	"encoding/json"
	"net/http"
	"time"
)

// HealthHandler returns a handler of liveness and readiness probes: GET /livez
// answers 200 while Health is Live, GET /readyz while it is Ready, and otherwise
// 503. The body is JSON with the reasons. The handler has no authentication, and
// its answers contain topic names and error texts: do not expose it to untrusted
// networks.
func (s *System) HealthHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", s.serveHealth(func(h Health) bool { return h.Live }))
	mux.HandleFunc("GET /readyz", s.serveHealth(func(h Health) bool { return h.Ready }))
	return mux
}

func (s *System) serveHealth(good func(Health) bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h := s.Health(r.Context())
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		if !good(h) {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		// An error means that the client has disconnected.
		_ = json.NewEncoder(w).Encode(h.view())
	}
}

// The body of a response: durations in seconds, instants as RFC 3339 or null,
// errors as text or null.
type (
	healthView struct {
		Live       bool        `json:"live"`
		Ready      bool        `json:"ready"`
		Problems   []string    `json:"problems"`
		Redis      *string     `json:"redis_error"`
		Draining   bool        `json:"draining"`
		ClockSteps clockView   `json:"clock_steps"`
		Listener   string      `json:"listener,omitempty"`
		Topics     []topicView `json:"topics"`
	}
	clockView struct {
		Count int64   `json:"count"`
		Last  *string `json:"last"`
		By    float64 `json:"by_seconds"`
	}
	topicView struct {
		Topic        string  `json:"topic"`
		Silent       float64 `json:"silent_seconds"`
		LastExchange *string `json:"last_exchange"`
		DownSince    *string `json:"down_since"`
		Behind       float64 `json:"behind_seconds"`
		Paused       bool    `json:"paused"`
		Running      int     `json:"running"`
		Failures     int     `json:"failures"`
		Err          *string `json:"error"`
	}
)

func (h Health) view() healthView {
	v := healthView{
		Live: h.Live, Ready: h.Ready, Problems: append([]string{}, h.Problems...),
		Redis: errorText(h.Redis), Draining: h.Draining,
		ClockSteps: clockView{h.ClockSteps.Count, instantText(h.ClockSteps.Last), h.ClockSteps.By.Seconds()},
		Listener:   h.Listener,
		Topics:     make([]topicView, len(h.Topics)),
	}
	for i, t := range h.Topics {
		v.Topics[i] = topicView{
			Topic: t.Topic, Silent: t.Silent.Seconds(), LastExchange: instantText(t.LastExchange),
			DownSince: instantText(t.DownSince), Behind: t.Behind.Seconds(), Paused: t.Paused,
			Running: t.Running, Failures: t.Failures, Err: errorText(t.Err),
		}
	}
	return v
}

func instantText(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := t.Format(time.RFC3339Nano)
	return &text
}

func errorText(err error) *string {
	if err == nil {
		return nil
	}
	text := err.Error()
	return &text
}
