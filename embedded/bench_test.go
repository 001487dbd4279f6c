package embedded_test

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/embedded"
)

// BenchmarkOpen opens a directory with pending timers: once as they were scheduled, in
// the log and snapshots of that time.
func BenchmarkOpen(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			dir := b.TempDir()
			began := time.Now()
			scheduleMany(b, dir, n)
			scheduled := time.Since(began)
			before := memory()
			var used uint64
			for b.Loop() {
				store, err := embedded.Open(dir, embedded.Options{Logger: slog.New(slog.DiscardHandler)})
				require.NoError(b, err)
				b.StopTimer()
				used = memory() - before
				require.NoError(b, store.Close())
				b.StartTimer()
			}
			b.ReportMetric(float64(n)/scheduled.Seconds(), "scheduled/s")
			b.ReportMetric(float64(used)/float64(n), "memory-B/timer")
			b.ReportMetric(float64(onDisk(b, dir))/float64(n), "disk-B/timer")
		})
	}
}

func scheduleMany(b *testing.B, dir string, n int) {
	b.Helper()
	store, err := embedded.Open(dir, embedded.Options{Sync: embedded.SyncNo, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(b, err)
	rdb := store.Client()
	conn, err := connection.New(rdb, connection.Config{})
	require.NoError(b, err)
	client, err := wakebell.NewClient(conn)
	require.NoError(b, err)
	topic := wakebell.NewTopic[string]("invoices")
	body := strings.Repeat("x", 100)
	for from := 0; from < n; from += 1000 {
		drafts := make([]wakebell.Draft, 0, 1000)
		for i := range min(1000, n-from) {
			drafts = append(drafts, topic.Draft(body, wakebell.ID(fmt.Sprintf("inv-%08d", from+i)), wakebell.In(72*time.Hour)))
		}
		_, err := client.Schedule(context.Background(), drafts...)
		require.NoError(b, err)
	}
	require.NoError(b, rdb.Close())
	require.NoError(b, store.Close())
}

func memory() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func onDisk(b *testing.B, dir string) (size int64) {
	b.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		size += info.Size()
		return err
	})
	require.NoError(b, err)
	return size
}
