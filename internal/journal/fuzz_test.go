package journal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/journal"
	"github.com/wakebell/wakebell/internal/journal/journaltest"
)

// FuzzRead opens directories with any log and any snapshot: nothing makes the reader fail
// in another way than with an error, what Salvage reads includes what Read reads, and a
// directory that was opened once opens again with the same records.
func FuzzRead(f *testing.F) {
	log, snapshot := sample(f)
	f.Add(log, []byte(nil))
	f.Add(log[:len(log)-3], []byte(nil))
	f.Add(log, snapshot)
	f.Fuzz(func(t *testing.T, log, snapshot []byte) {
		disk := journaltest.New()
		name := "log-00000001"
		if len(snapshot) > 0 {
			name = "log-00000002"
			put(t, disk, "snapshot-00000002", snapshot)
		}
		put(t, disk, name, log)
		var salvaged, read, again int
		count := func(n *int) func(journal.Record) error {
			return func(journal.Record) error { *n++; return nil }
		}
		_, err := journal.Salvage(disk, count(&salvaged), func(*journal.DamageError) {})
		if err != nil {
			require.ErrorIs(t, err, journal.ErrVersion)
		}
		l, _, err := journal.Open(disk, journal.No, count(&read))
		require.GreaterOrEqual(t, salvaged, read)
		if err != nil {
			return
		}
		require.NoError(t, l.Close())
		l, _, err = journal.Open(disk, journal.No, count(&again))
		require.NoError(t, err)
		require.Equal(t, read, again)
		require.NoError(t, l.Close())
	})
}

func put(t require.TestingT, disk *journaltest.Disk, name string, b []byte) {
	file, err := disk.Create(name)
	require.NoError(t, err)
	_, err = file.WriteAt(b, 0)
	require.NoError(t, err)
}

// sample returns a log, and the snapshot that the log after it begins with.
func sample(t require.TestingT) (log, snapshot []byte) {
	disk := journaltest.New()
	l, _, err := journal.Open(disk, journal.Always, func(journal.Record) error { return nil })
	require.NoError(t, err)
	for _, word := range []string{"a", "", "\x00\xff"} {
		require.NoError(t, l.Reserve(100))
		seq, err := l.Append(1000, [][]string{{"SET", word, "x"}, {"DEL", word}})
		require.NoError(t, err)
		require.True(t, l.Wait(seq, func() bool { return false }))
	}
	log = contents(t, disk, "log-00000001")
	gen, err := l.Rotate()
	require.NoError(t, err)
	require.NoError(t, l.Snapshot(gen, 3, 1000, func(emit func([][]string) error) error { return emit([][]string{{"SET", "a", "x"}}) }))
	require.NoError(t, l.Close())
	return log, contents(t, disk, "snapshot-00000002")
}

func contents(t require.TestingT, disk *journaltest.Disk, name string) []byte {
	file, err := disk.Open(name)
	require.NoError(t, err)
	size, err := file.Size()
	require.NoError(t, err)
	b := make([]byte, size)
	_, err = file.ReadAt(b, 0)
	require.NoError(t, err)
	return b
}

// Any byte of what was acknowledged, changed, is noticed: as damage, or at the very end as
// what a crash leaves.
func TestEachChangedByteIsNoticed(t *testing.T) {
	t.Parallel()
	log, snapshot := sample(t)
	for name, b := range map[string][]byte{"log-00000001": log, "snapshot-00000002": snapshot} {
		for i := range b {
			changed := append([]byte(nil), b...)
			changed[i] ^= 0x10
			disk := journaltest.New()
			put(t, disk, name, changed)
			if name != "log-00000001" {
				put(t, disk, "log-00000002", log) // its base does not matter here
			}
			found, err := journal.Read(disk, func(journal.Record) error { return nil })
			require.True(t, err != nil || found.Cut != nil || reservedByte(i), "%s: byte %d", name, i)
		}
	}
}

// reservedByte reports whether a byte of the header has no meaning.
func reservedByte(i int) bool { return i >= 44 && i < 48 }
