package browser_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/wakebelltype"
)

type body struct {
	Invoice int    `json:"invoice"`
	Tenant  string `json:"tenant"`
	Amount  string `json:"amount"`
}

const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// fill stores thousands of timers and some of everything else.
func (s *site) fill() {
	t, ctx := s.t, s.t.Context()
	for i, topic := range []string{"invoices", "mails", "reminders", "exports", "webhooks"} {
		drafts := make([]wakebell.Draft, 0, 1000)
		for n := range 800 + 50*i {
			b := body{n, fmt.Sprintf("tenant-%d", n%7), fmt.Sprintf("%d.00", 10+n)}
			drafts = append(drafts, wakebell.NewTopic[body](topic).Draft(b, wakebell.ID(fmt.Sprintf("%s-%05d", topic, n)),
				wakebell.In(time.Hour+time.Duration(n)*time.Minute), wakebell.Header("traceparent", trace), wakebell.Header("tenant", b.Tenant)))
		}
		_, err := s.client.Schedule(ctx, drafts...)
		require.NoError(t, err)
	}
	s.kill("mails")
	due := make([]wakebell.Draft, 240)
	for n := range due {
		due[n] = wakebell.NewTopic[body]("mails").Draft(body{Invoice: n}, wakebell.ID(fmt.Sprintf("due-%04d", n)), wakebell.In(0))
	}
	_, err := s.client.Schedule(ctx, due...)
	require.NoError(t, err)
	_, err = s.client.Pause(ctx, "mails", "otto", "mail server is down, see INC-4711")
	require.NoError(t, err)
	_, err = s.client.Retune(ctx, "invoices", wakebelltype.Settings{MaxConcurrent: 20, MaxAttempts: 8})
	require.NoError(t, err)
	exports := queue.New[body]("exports")
	for n := range 60 {
		_, err := exports.Publish(ctx, s.client.Queues(), body{Invoice: n, Tenant: "tenant-1"})
		require.NoError(t, err)
	}
	for name, rule := range map[string]recurring.Rule{
		"nightly-report": {Cron: "30 2 * * *", Zone: "Europe/Berlin", Misfire: recurring.MisfireSkip},
		"payday":         {RRule: "FREQ=MONTHLY;BYMONTHDAY=-1;BYHOUR=8;BYMINUTE=0;BYSECOND=0"}, "sync": {Every: 15 * time.Minute},
	} {
		require.NoError(t, s.client.Schedules().Put(ctx, wakebell.NewTopic[body]("exports").Recurring(name, rule, body{})))
	}
	turn, err := s.gates.Acquire(ctx, "deploy")
	require.NoError(t, err)
	require.NoError(t, turn.Guard(ctx, "database"))
	s.fillJoin()
	s.fillPast()
	s.stayingNode("invoices", "mails", "webhooks")
}

// fillJoin stores a join that waits for the last of its parts; others are done or dead letters.
func (s *site) fillJoin() {
	const ended = 20
	accounts := wakebell.NewTopic[body]("accounts")
	parts := make([]wakebell.Draft, ended+10)
	for n := range parts {
		due := wakebell.In(0)
		if n >= ended {
			due = wakebell.In(time.Hour)
		}
		parts[n] = accounts.Draft(body{Invoice: n, Tenant: "tenant-3"}, wakebell.ID(fmt.Sprintf("close-of-account-%05d", n)), due)
	}
	report := wakebell.NewTopic[body]("reports").Draft(body{Tenant: "tenant-3"}, wakebell.ID("end-of-month"), wakebell.In(24*time.Hour))
	_, err := s.client.Schedule(s.t.Context(), wakebell.Batch(parts...).Then(report)...)
	require.NoError(s.t, err)
	handle := func(_ context.Context, timer wakebell.Timer[body]) error {
		if timer.Body.Invoice%5 == 0 {
			return wakebell.Reject(errors.New("the bookings of tenant-3 do not add up: connect to database 10.0.3.9: connection refused"))
		}
		return nil
	}
	s.node("accounts", handle, func() bool {
		join, err := s.client.Join(s.t.Context(), "reports", "end-of-month")
		return err == nil && join.Ended() == ended
	})
}

// fillPast stores what nodes counted in the last 6 hours, and how long turns were held.
func (s *site) fillPast() {
	ctx, now := s.t.Context(), time.Now().Unix()/60
	for i, topic := range []string{"invoices", "webhooks"} {
		fields := map[string]any{}
		for minute := now - 360; minute < now; minute++ {
			handled := 40 + 30*i + int(25*math.Sin(float64(minute)/40)) + int(minute%7)
			late := 2 + minute%3
			if minute%97 == 0 {
				late = 2600
			}
			for kind, n := range map[string]int64{
				"s": int64(handled), "h": int64(handled - 2), "f": minute % 3, "n": int64(handled), "l": int64(handled) * late * 700, "m": late * 1000,
			} {
				fields[fmt.Sprint(minute, kind)] = n
			}
		}
		require.NoError(s.t, s.rdb.HSet(ctx, "timers_counts:"+topic, fields).Err())
	}
	today := time.Now().Unix() / 86400
	for i, turns := range []int{12, 310, 95, 41, 7, 2} {
		require.NoError(s.t, s.rdb.HSet(ctx, "{gates}:holds:deploy", fmt.Sprintf("%d:%d", today, i), turns).Err())
	}
}

// stayingNode runs a node on topics until the end of the test.
func (s *site) stayingNode(topics ...string) {
	cfg := wakebell.Config{}
	for _, topic := range topics {
		cfg.Handlers = append(cfg.Handlers, wakebell.Handle(wakebell.NewTopic[body](topic),
			func(context.Context, wakebell.Timer[body]) error { return nil }, wakebell.RateLimit(50, time.Second, 50), wakebell.MaxConcurrent(10)))
	}
	sys, err := wakebell.New(actor.NewActorSystem(), s.client.Connection(), cfg)
	require.NoError(s.t, err)
	require.NoError(s.t, sys.Start(s.t.Context()))
	s.t.Cleanup(func() { require.NoError(s.t, sys.Stop()) })
}

// kill makes dead letters of three kinds.
func (s *site) kill(topic string) {
	drafts := make([]wakebell.Draft, 90)
	for n := range drafts {
		drafts[n] = wakebell.NewTopic[body](topic).Draft(body{Invoice: n, Tenant: "tenant-2"}, wakebell.ID(fmt.Sprintf("lost-%03d", n)), wakebell.In(0))
	}
	_, err := s.client.Schedule(s.t.Context(), drafts...)
	require.NoError(s.t, err)
	reasons := []string{"connect to mail server 10.0.3.7: connection refused", "connect to mail server 10.0.3.7: connection refused", "mailbox does not exist"}
	handle := func(_ context.Context, timer wakebell.Timer[body]) error {
		return wakebell.Reject(errors.New(reasons[timer.Body.Invoice%3]))
	}
	s.node(topic, handle, func() bool {
		stats, err := s.client.Stats(s.t.Context(), topic)
		return err == nil && stats.Dead == int64(len(drafts))
	})
}

// node runs a node until the condition holds.
func (s *site) node(topic string, handle func(context.Context, wakebell.Timer[body]) error, until func() bool) {
	sys, err := wakebell.New(actor.NewActorSystem(), s.client.Connection(), wakebell.Config{
		Handlers: []wakebell.Handler{wakebell.Handle(wakebell.NewTopic[body](topic), handle)},
	})
	require.NoError(s.t, err)
	require.NoError(s.t, sys.Start(s.t.Context()))
	defer func() { require.NoError(s.t, sys.Stop()) }()
	require.Eventually(s.t, until, time.Minute, 5*time.Millisecond)
}

// pages are the pages that the tests visit, by name.
func (s *site) pages() [][2]string {
	letters, err := s.client.LastDead(s.t.Context(), "mails", 1)
	require.NoError(s.t, err)
	return [][2]string{
		{"overview", ""},
		{"topics", "topics"},
		{"topic", "topic?name=mails"},
		{"timers", "timers?topic=invoices"},
		{"timer", "timer?topic=invoices&id=invoices-00007"},
		{"join", "timer?topic=reports&id=end-of-month"},
		{"part", "timer?topic=accounts&id=close-of-account-00025"},
		{"dead", "dead?topic=mails"},
		{"letter", "letter?topic=mails&entry=" + letters[0].Entry},
		{"queues", "queues"},
		{"queue", "queue?name=exports"},
		{"schedules", "schedules"},
		{"schedule", "schedule?name=nightly-report"},
		{"gates", "gates"},
		{"gate", "gate?name=deploy"},
		{"nodes", "nodes"},
		{"doctor", "doctor"},
		{"jobs", "jobs"},
		{"audit", "audit"},
		{"search", "search?q=mail"},
		{"deadtopics", "dead"},
		{"ask", "do/pause?topic=invoices"},
		{"new", "do/schedule?topic=invoices"},
		{"editor", "do/put-schedule?name=nightly-report"},
		{"redrive", "do/redrive?topic=mails&prefix=" + strings.ReplaceAll("connect to mail", " ", "+")},
	}
}
