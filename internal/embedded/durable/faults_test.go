package durable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/wakebell/wakebell/internal/journal"
	"github.com/wakebell/wakebell/internal/journal/journaltest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		os.Exit(child(dir))
	}
	goleak.VerifyTestMain(m)
}

func clientOf(t testing.TB, s *Store) *redis.Client {
	t.Helper()
	rdb := s.Client()
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// fill writes until the store refuses, and returns the number of acknowledged writes.
func fill(t *testing.T, rdb *redis.Client) int64 {
	t.Helper()
	value := strings.Repeat("x", 100_000)
	for n := range int64(1000) {
		err := rdb.Eval(t.Context(), `return redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])`, []string{"h"}, n, value).Err()
		if err != nil {
			require.True(t, strings.HasPrefix(err.Error(), "OOM "), "%v", err)
			return n
		}
	}
	t.Fatal("the disk is not full")
	return 0
}

func TestFullDiskRefusesWritesAndLosesNothing(t *testing.T) {
	t.Parallel()
	disk := journaltest.New()
	disk.Limit(12 << 20)
	s := openOn(t, disk, Options{})
	rdb := clientOf(t, s)
	n := fill(t, rdb)
	require.Positive(t, n)

	require.Equal(t, n, rdb.HLen(t.Context(), "h").Val(), "reads are answered, and what was refused was not executed")
	large := strings.Repeat("x", 100_000)
	require.ErrorContains(t, rdb.Set(t.Context(), "k", large, 0).Err(), "OOM")
	_, err := rdb.TxPipelined(t.Context(), func(pipe redis.Pipeliner) error {
		pipe.HGet(t.Context(), "h", "0")
		pipe.Del(t.Context(), "h")
		pipe.Set(t.Context(), "k", large, 0)
		return nil
	})
	require.ErrorContains(t, err, "OOM")

	disk.Limit(-1)
	require.NoError(t, rdb.Set(t.Context(), "k", "v", 0).Err(), "there is space again")
	require.NoError(t, s.Close())
	s = openOn(t, disk, Options{})
	defer func() { require.NoError(t, s.Close()) }()
	rdb = clientOf(t, s)
	require.Equal(t, n, rdb.HLen(t.Context(), "h").Val())
	require.Equal(t, "v", rdb.Get(t.Context(), "k").Val())
}

// Space was reserved, but the disk does not keep its word: the reply waits.
func TestWriteThatFailsIsAnsweredWhenItIsStored(t *testing.T) {
	t.Parallel()
	disk := journaltest.New()
	s := openOn(t, disk, Options{})
	defer func() { require.NoError(t, s.Close()) }()
	rdb := clientOf(t, s)
	require.NoError(t, rdb.Incr(t.Context(), "n").Err())
	disk.FailWrites(1)
	require.NoError(t, rdb.Incr(t.Context(), "n").Err(), "after the store has written it again")
	require.Equal(t, "2", rdb.Get(t.Context(), "n").Val())
}

// After a failed sync the file may lack what was written before; a snapshot has it.
func TestFailedSyncIsFollowedBySnapshot(t *testing.T) {
	t.Parallel()
	disk := journaltest.New()
	s := openOn(t, disk, Options{})
	rdb := clientOf(t, s)
	require.NoError(t, rdb.Set(t.Context(), "before", 1, 0).Err())
	disk.FailSync(errors.New("broken cable"))
	acked := make(chan error, 1)
	go func() { acked <- rdb.Set(context.WithoutCancel(t.Context()), "during", 1, 0).Err() }()
	require.Eventually(t, func() bool { return s.log.Broken() != nil }, time.Minute, time.Millisecond)
	require.ErrorContains(t, clientOf(t, s).Set(t.Context(), "k", 1, 0).Err(), "MISCONF")
	require.Empty(t, acked, "what is not stored is not acknowledged")
	disk.FailSync(nil)
	require.NoError(t, <-acked)
	require.NoError(t, rdb.Set(t.Context(), "after", 1, 0).Err())

	var image *journaltest.Disk
	disk.Watch(func(d *journaltest.Disk) {
		if image == nil {
			image = d.Cut(func(int) int { return 0 }) // nothing that was not synced
		}
	})
	require.NoError(t, s.Close())
	s = openOn(t, image, Options{})
	defer func() { require.NoError(t, s.Close()) }()
	require.EqualValues(t, 3, clientOf(t, s).Exists(t.Context(), "before", "during", "after").Val())
}

func TestSnapshotBoundsLog(t *testing.T) {
	t.Parallel()
	disk := journaltest.New()
	s := openOn(t, disk, Options{snapshotAfter: 10_000})
	defer func() { require.NoError(t, s.Close()) }()
	rdb := clientOf(t, s)
	for range 3000 {
		require.NoError(t, rdb.Incr(t.Context(), "n").Err())
	}
	require.Eventually(t, func() bool { return disk.Used() < 30_000 }, time.Minute, time.Millisecond)
	names, err := disk.Names()
	require.NoError(t, err)
	require.NotContains(t, names, "log-00000001")
}

func TestDirectoryIsLocked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := Open(dir, Options{Logger: quiet()})
	require.NoError(t, err)
	_, err = Open(dir, Options{Logger: quiet()})
	var locked *journal.LockedError
	require.ErrorAs(t, err, &locked)
	require.Equal(t, holder(), locked.Holder)
	_, _, err = Check(dir)
	require.ErrorAs(t, err, &locked)
	require.NoError(t, s.Close())
	_, damage, err := Check(dir)
	require.NoError(t, err)
	require.Empty(t, damage)
}

// write makes a store with a snapshot and a log.
func write(t *testing.T, dir string) {
	t.Helper()
	s, err := Open(dir, Options{Logger: quiet()})
	require.NoError(t, err)
	rdb := clientOf(t, s)
	for i := range 2000 {
		require.NoError(t, rdb.HSet(t.Context(), "h", i, strings.Repeat("v", 100)).Err())
	}
	require.NoError(t, s.snapshot())
	for i := range 100 {
		require.NoError(t, rdb.Set(t.Context(), fmt.Sprint("k", i), i, 0).Err())
	}
	require.NoError(t, s.Close())
}

func TestDamageStopsStartAndTheRestIsSaved(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		file string
		keys int64 // that can be read
	}{{"log-00000002", 99}, {"snapshot-00000002", 100}} {
		t.Run(tt.file, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir)
			path := filepath.Join(dir, tt.file)
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			at := bytes.Index(b, []byte("k50"))
			if at < 0 {
				at = len(b) / 2
			}
			b[at] ^= 1
			require.NoError(t, os.WriteFile(path, b, 0o600))

			_, err = Open(dir, Options{Logger: quiet()})
			var damage *journal.DamageError
			require.ErrorAs(t, err, &damage)
			require.Equal(t, tt.file, damage.File)
			require.InDelta(t, at, damage.Offset, 70_000)
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, b, after, "nothing is changed")

			_, all, err := Check(dir)
			require.NoError(t, err)
			require.NotEmpty(t, all)
			saved := filepath.Join(t.TempDir(), "saved")
			_, err = Copy(dir, saved)
			require.NoError(t, err)
			s, err := Open(saved, Options{Logger: quiet()})
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Close()) }()
			rdb := clientOf(t, s)
			keys, err := rdb.Keys(t.Context(), "k*").Result()
			require.NoError(t, err)
			require.Len(t, keys, int(tt.keys))
			require.Positive(t, rdb.HLen(t.Context(), "h").Val())

			var commands bytes.Buffer
			_, err = Export(dir, &commands)
			require.NoError(t, err)
			require.Contains(t, commands.String(), "*3\r\n$3\r\nSET\r\n$3\r\nk51\r\n$2\r\n51\r\n")
			_, err = Copy(dir, saved)
			require.Error(t, err)
		})
	}
}

func TestMissingLogIsDamage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir)
	require.NoError(t, os.Remove(filepath.Join(dir, "log-00000002")))
	_, err := Open(dir, Options{Logger: quiet()})
	require.ErrorContains(t, err, "log-00000002: the file is missing")
}

func TestLaterVersionIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir)
	path := filepath.Join(dir, "log-00000002")
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	b[10]++
	require.NoError(t, os.WriteFile(path, b, 0o600))
	_, err = Open(dir, Options{Logger: quiet()})
	require.ErrorIs(t, err, journal.ErrVersion)
}

func TestUnsupportedCommandsAreRefused(t *testing.T) {
	t.Parallel()
	s := openOn(t, journaltest.New(), Options{})
	defer func() { require.NoError(t, s.Close()) }()
	rdb := clientOf(t, s)
	for _, command := range []string{
		"SPOP s", "PFADD p x", "BLPOP l 1", "WATCH k", "SELECT 1", "MOVE k 1", "HEXPIRE h 10 FIELDS 1 f", "XREAD BLOCK 0 STREAMS x $",
		"EVAL return{redis.call('SPOP','s')} 0",
	} {
		words := strings.Fields(command)
		args := make([]any, len(words))
		for i, w := range words {
			args[i] = w
		}
		require.ErrorContains(t, rdb.Do(t.Context(), args...).Err(), "the embedded store", command)
	}
	_, err := rdb.TxPipelined(t.Context(), func(pipe redis.Pipeliner) error {
		pipe.Set(t.Context(), "k", "v", 0)
		pipe.SPop(t.Context(), "s")
		return nil
	})
	require.Error(t, err)
	require.Zero(t, rdb.Exists(t.Context(), "k").Val())
}

func TestSubscriptionsEndWithTheirConnection(t *testing.T) {
	t.Parallel()
	s := openOn(t, journaltest.New(), Options{})
	defer func() { require.NoError(t, s.Close()) }()
	rdb := clientOf(t, s)
	sub := rdb.Subscribe(t.Context(), "c")
	_, err := sub.Receive(t.Context())
	require.NoError(t, err)
	require.NoError(t, rdb.Publish(t.Context(), "c", "hello").Err())
	m, err := sub.ReceiveMessage(t.Context())
	require.NoError(t, err)
	require.Equal(t, "hello", m.Payload)
	require.NoError(t, sub.Close())
	require.Eventually(t, func() bool { return rdb.PubSubNumSub(t.Context(), "c").Val()["c"] == 0 }, time.Minute, time.Millisecond)
}

// Another process uses the store by its socket.
func TestSocketServesOthers(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "wb") //nolint:usetesting // the paths of sockets are short
	require.NoError(t, err)
	defer func() { require.NoError(t, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "s")
	for range 2 { // the second start finds the socket of the first
		s, err := Open(filepath.Join(dir, "store"), Options{Logger: quiet(), Socket: path})
		require.NoError(t, err)
		s.listener.(interface{ SetUnlinkOnClose(bool) }).SetUnlinkOnClose(false)
		rdb := redis.NewClient(&redis.Options{Network: "unix", Addr: path})
		require.NoError(t, rdb.Incr(t.Context(), "n").Err())
		require.NoError(t, rdb.Close())
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		require.NoError(t, s.Close())
	}
	s, err := Open(filepath.Join(dir, "store"), Options{Logger: quiet()})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	require.Equal(t, "2", clientOf(t, s).Get(t.Context(), "n").Val())
}
