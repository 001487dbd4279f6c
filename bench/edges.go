package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/embedded"
	"github.com/wakebell/wakebell/remote"
	"github.com/wakebell/wakebell/webhook"
)

const (
	storedTimers  = 20_000 // of an embedded store in a run
	remoteCalls   = 20_000
	postedTimers  = 20_000
	edgeCallers   = 50
	edgeHandlers  = 100
	edgeBodyBytes = 100
)

// edges are the ways into and out of Wakebell beside a Redis and Go.
func edges() []trial {
	return []trial{
		{name: "embedded", about: "timers scheduled by 50 callers, one in a call, and handled, by the store", contenders: []contender{
			{"redis", onRedis},
			{"always", onStore(embedded.SyncAlways)},
			{"everysec", onStore(embedded.SyncEverySec)},
			{"no", onStore(embedded.SyncNo)},
		}},
		{name: "http", about: "one timer a call, 50 callers, through a node", contenders: []contender{
			{"direct", scheduleCalls(remoteCalls, edgeCallers)}, {"grpc", throughNode(callGRPC)}, {"http", throughNode(callHTTP)},
		}},
		{name: "webhook", about: "timers that are due, posted to a server in the process", contenders: []contender{
			{"none", nodeHandling(edgeBodyBytes, used{}, single(edgeHandlers, nil))}, {"post", posted},
		}},
	}
}

// onRedis schedules timers and handles them on the Redis of the world.
func onRedis(ctx context.Context, w *world) (sample, error) {
	rdb := w.client(0)
	defer func() { _ = rdb.Close() }()
	return scheduledAndHandled(ctx, w, rdb)
}

// onStore is onRedis with an embedded store in a folder of its own.
func onStore(sync embedded.Sync) func(context.Context, *world) (sample, error) {
	return func(ctx context.Context, w *world) (s sample, err error) {
		dir, err := os.MkdirTemp("", "bench-store-")
		if err != nil {
			return nil, err
		}
		defer func() { _ = os.RemoveAll(dir) }() // only files of this run
		store, err := embedded.Open(dir, embedded.Options{Sync: sync, Logger: quiet()})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, store.Close()) }()
		rdb := store.Client()
		defer func() { _ = rdb.Close() }()
		return scheduledAndHandled(ctx, w, rdb)
	}
}

func scheduledAndHandled(ctx context.Context, w *world, rdb redis.UniversalClient) (sample, error) {
	n := w.many(storedTimers)
	var handled atomic.Int64
	sys, err := used{}.system(rdb, single(edgeHandlers, nil)(rdb, func(n int) { handled.Add(int64(n)) }))
	if err != nil {
		return nil, err
	}
	if err := sys.Start(ctx); err != nil {
		return nil, err
	}
	topic, body := wakebell.NewTopic[[]byte]("node"), bytes.Repeat([]byte("x"), edgeBodyBytes)
	s, err := w.measure(ctx, n, func() error {
		err := calls(n, edgeCallers, func(i int) error {
			_, err := topic.Schedule(ctx, sys.Client(), body, wakebell.ID(timerID(i)), wakebell.In(0))
			return err
		})
		if err != nil {
			return err
		}
		return until(ctx, func() bool { return handled.Load() >= int64(n) && sys.Counters()["node"].Acked >= int64(n) })
	})
	return s, errors.Join(err, sys.Stop())
}

// throughNode schedules timers through a node in the process.
func throughNode(caller func(context.Context, *remote.Server) (call func(i int) error, end func(), err error)) func(context.Context, *world) (sample, error) {
	return func(ctx context.Context, w *world) (s sample, err error) {
		rdb := w.client(0)
		defer func() { _ = rdb.Close() }()
		sys, err := used{}.system(rdb)
		if err != nil {
			return nil, err
		}
		server, err := remote.Serve(sys, remote.Config{Address: "127.0.0.1:0", HTTPAddress: "127.0.0.1:0"})
		if err != nil {
			return nil, err
		}
		defer server.Stop()
		if err := sys.Start(ctx); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, sys.Stop()) }()
		call, end, err := caller(ctx, server)
		if err != nil {
			return nil, err
		}
		defer end()
		if err := call(-1); err != nil { // connects
			return nil, err
		}
		n := w.many(remoteCalls)
		return w.measure(ctx, n, func() error { return calls(n, edgeCallers, call) })
	}
}

func callGRPC(ctx context.Context, server *remote.Server) (call func(i int) error, end func(), err error) {
	conn, err := connection.WithoutRedis(connection.Config{Logger: quiet()})
	if err != nil {
		return nil, nil, err
	}
	client, err := remote.Dial(ctx, server.Address(), conn, remote.DialConfig{})
	if err != nil {
		return nil, nil, err
	}
	topic, body := wakebell.NewTopic[[]byte]("schedule"), bytes.Repeat([]byte("x"), edgeBodyBytes)
	return func(i int) error {
		_, err := topic.Schedule(ctx, client, body, wakebell.ID(timerID(i)), wakebell.In(time.Hour))
		return err
	}, client.Close, nil
}

func callHTTP(ctx context.Context, server *remote.Server) (call func(i int) error, end func(), err error) {
	transport := &http.Transport{MaxIdleConnsPerHost: edgeCallers}
	client, url := &http.Client{Transport: transport}, "http://"+server.HTTPAddress()+"/v1/topics/schedule/timers"
	text := bytes.Repeat([]byte("x"), edgeBodyBytes)
	call = func(i int) error {
		body := fmt.Sprintf(`{"id":%q,"in":"1h","body":%q}`, timerID(i), text)
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader([]byte(body)))
		if err != nil {
			return err
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		answer, err := io.ReadAll(response.Body)
		if err = errors.Join(err, response.Body.Close()); err == nil && response.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s", response.Status, answer)
		}
		return err
	}
	return call, transport.CloseIdleConnections, nil
}

// posted handles timers with a webhook.
func posted(ctx context.Context, w *world) (sample, error) {
	receiver := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		answer.WriteHeader(http.StatusNoContent)
	}))
	defer receiver.Close()
	loopback, err := webhook.ParseNetworks("loopback")
	if err != nil {
		return nil, err
	}
	hook, err := webhook.New(webhook.Config{URL: receiver.URL, Secrets: []webhook.Secret{webhook.NewSecret()}, AllowNetworks: loopback})
	if err != nil {
		return nil, err
	}
	defer hook.Close()
	return nodeHandlingMany(ctx, w, w.many(postedTimers), edgeBodyBytes, used{}, func(_ redis.UniversalClient, handled func(n int)) wakebell.Handler {
		return wakebell.Handle(wakebell.NewTopic[[]byte]("node"), func(ctx context.Context, t wakebell.Timer[[]byte]) error {
			defer handled(1)
			return hook.Handle(ctx, t)
		}, wakebell.MaxConcurrent(edgeHandlers))
	})
}
