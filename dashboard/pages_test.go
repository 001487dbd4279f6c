package dashboard_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
)

func TestEmptyPagesSayWhatToDoNext(t *testing.T) {
	t.Parallel()
	s := open(t)
	for page, want := range map[string]string{
		"": "There is no topic yet", "topics": "There is no topic yet", "dead": "No topic has dead letters",
		"queues": "open one by its name", "schedules": "wakebell schedules put", "gates": "No gate is held",
		"nodes": "No node has answered yet", "jobs": "No job has run", "doctor": "checks:", "search": "Enter the name",
	} {
		require.Contains(t, s.get(page), want, page)
	}
}

func TestTopicShowsItsTimers(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.schedule("invoices", "inv-1", time.Hour, `{"n":1}`, wakebell.ContentType("application/json"))
	s.schedule("invoices", "inv-2", 2*time.Hour, "x")
	require.Contains(t, s.get(""), "2 pending")
	page := s.get("topics")
	require.Contains(t, page, "invoices")
	page = s.get("topic", "name", "invoices")
	require.Contains(t, page, "inv-1")
	require.Contains(t, page, "2 pending")
	page = s.get("timer", "topic", "invoices", "id", "inv-1")
	require.Contains(t, page, "&#34;n&#34;: 1")
	require.Contains(t, page, "application/json")
}
