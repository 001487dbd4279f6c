package main

import (
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/wakebelltype"
)

// api answers requests. It needs only a Client, so it could be a separate process.
type api struct{ client *wakebell.Client }

func routes(c *wakebell.Client) http.Handler {
	a, mux := api{c}, http.NewServeMux()
	mux.HandleFunc("POST /reminders", a.create)
	mux.HandleFunc("GET /reminders/{id}", a.show)
	mux.HandleFunc("DELETE /reminders/{id}", a.cancel)
	return mux
}

type reminder struct {
	ID    string         `json:"id"`
	Text  string         `json:"text"`
	Due   time.Time      `json:"due"`
	State wakebell.State `json:"state"`
}

func (a api) create(w http.ResponseWriter, r *http.Request) {
	var body struct{ Text, In string }
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	in, err := time.ParseDuration(body.In)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	opts := []wakebell.ScheduleOption{wakebell.In(in)}
	if key := r.Header.Get("Idempotency-Key"); key != "" { // a retry of the request changes nothing
		opts = append(opts, wakebell.ID(key), wakebell.IfExists(wakebelltype.PolicyKeep))
	}
	scheduled, err := a.client.Schedule(r.Context(), Reminders.Draft(body.Text, opts...))
	if err != nil {
		fail(w, err)
		return
	}
	s := scheduled[0]
	w.Header().Set("Location", "/reminders/"+s.ID)
	answer(w, http.StatusCreated, reminder{s.ID, body.Text, s.Due, wakebell.StatePending})
}

func (a api) show(w http.ResponseWriter, r *http.Request) {
	info, content, err := a.client.Get(r.Context(), Reminders.Name(), r.PathValue("id"))
	if err != nil {
		fail(w, err)
		return
	}
	answer(w, http.StatusOK, reminder{info.ID, string(content.Body), info.Due, info.State})
}

func (a api) cancel(w http.ResponseWriter, r *http.Request) {
	presence, err := Reminders.Cancel(r.Context(), a.client, r.PathValue("id"))
	switch {
	case err != nil:
		fail(w, err)
	case presence == wakebelltype.PresenceAbsent:
		fail(w, wakebell.ErrNotFound)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// fail answers with the status code of an error.
func fail(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, wakebell.ErrNotFound):
		http.Error(w, "no such reminder", http.StatusNotFound)
	case errors.Is(err, wakebell.ErrInvalid):
		http.Error(w, err.Error(), http.StatusBadRequest)
	case errors.Is(err, wakebell.ErrUnavailable), errors.Is(err, wakebell.ErrMemoryFull):
		http.Error(w, "try again later", http.StatusServiceUnavailable)
	default:
		http.Error(w, "internal error", http.StatusInternalServerError)
	}
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		log.Printf("write the answer: %v", err)
	}
}
