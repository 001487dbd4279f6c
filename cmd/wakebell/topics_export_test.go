package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/internal/redistest"
)

var exportedAt = regexp.MustCompile(`"at":"20[23][^"]*","shards"`)

// topics export writes a file, and topics import stores it under another name.
func TestTopicIsExportedAndImported(t *testing.T) {
	b := setup(t)
	const at = "2040-01-02T03:04:05Z"
	b.fine("schedule", "-t", "TOPIC", "--id", "inv-42", "--at", at, "--json", `{"cents":4200}`, "--header", "tenant=acme")
	b.fine("retune", "-t", "TOPIC", "--max-concurrent", "7")
	lines := b.fine("topics", "export", "TOPIC")
	b.golden("topics_export.jsonl", exportedAt.ReplaceAllString(lines, `"at":"NOW","shards"`))

	file := filepath.Join(t.TempDir(), "topic.jsonl")
	require.Empty(t, b.fine("topics", "export", "TOPIC", "--out", file))
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, exportedAt.ReplaceAllString(lines, ""), exportedAt.ReplaceAllString(string(written), ""))
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "it has the payloads")

	copied := b.topic + "-copy"
	b.golden("topics_import_dry.txt", b.fine("topics", "import", file, "--topic", copied, "--dry-run"))
	absent, _, _ := b.call("ls", "-t", copied, "-o", "json")
	require.Equal(t, cli.ExitNotFound, absent)
	b.golden("topics_import.txt", b.fine("topics", "import", file, "--topic", copied))
	code, stdout, stderr := b.callWith(strings.NewReader(lines), "topics", "import", "-t", copied, "-o", "json")
	require.Zero(t, code, stderr)
	b.golden("topics_import.json", stdout)
	b.golden("topics_import_replace.txt", b.fine("topics", "import", file, "--topic", copied, "--replace"))
	got := objects(t, b.fine("get", "-t", copied, "inv-42", "-o", "json"))[0]
	require.Equal(t, at, got["due"])
	want := objects(t, b.fine("get", "-t", "TOPIC", "inv-42", "-o", "json"))[0]
	require.Equal(t, map[string]any{"tenant": "acme"}, want["headers"])
	want["topic"] = copied
	require.Equal(t, want, got)
	require.Contains(t, b.fine("topics", "--prefix", copied), "max-concurrent=7")
	audited := objects(t, b.fine("audit", "--name", copied, "--operation", "topic.import", "-o", "json"))
	require.Len(t, audited, 3, "a dry run is not recorded")
	require.Equal(t, "dead letters: 0, existed: 1", audited[1]["detail"])
	require.EqualValues(t, 1, audited[2]["count"])
}

// A file that is cut off or has a wrong line is stored up to there.
func TestBrokenFileIsNotImported(t *testing.T) {
	b := setup(t)
	b.fine("schedule", "-t", "TOPIC", "--id", "x", "--in", "1h")
	whole := b.fine("topics", "export", "TOPIC")
	parts := strings.SplitAfter(whole, "\n")
	copied := b.topic + "-copy"
	fails := func(code int, lines, want string) {
		t.Helper()
		got, stdout, stderr := b.callWith(strings.NewReader(lines), "topics", "import", "-t", copied)
		require.Equal(t, code, got, stderr)
		require.Contains(t, stderr, want)
		_ = stdout
	}
	fails(cli.ExitUsage, "", "line 1: empty or cut off")
	fails(cli.ExitUsage, "hello\n", "line 1: not the first line of an exported topic")
	fails(cli.ExitUsage, parts[0]+parts[1]+`{"type":"timer"}`+"\n", "line 3: id: 0 bytes, want 1 to 512")
	fails(cli.ExitUsage, parts[0]+parts[1], "line 2: the file ends without its last line: it was cut off")
	fails(cli.ExitUsage, parts[0]+parts[1]+`{"type":"timer"}`+"\n", "lines up to 2 are stored; to continue, add --from-line 3")
	require.Len(t, objects(t, b.fine("ls", "-t", copied, "-o", "json")), 1, "the lines before it are stored")

	code, _, stderr := b.call("topics", "export", "TOPIC", "--out", filepath.Join(t.TempDir(), "none", "x"))
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, stderr, "no such file or directory")
	code, _, stderr = b.call("topics", "import", filepath.Join(t.TempDir(), "none"))
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, stderr, "no such file or directory")
	code, _, stderr = b.call("topics", "import", "--from-line", "-1")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, stderr, "FromLine: -1, want at least 0")
}

func TestExportWarnsOfUnusedTopic(t *testing.T) {
	code, stdout, stderr := setup(t).call("topics", "export", "mistyped")
	require.Equal(t, cli.ExitOK, code)
	require.Contains(t, stderr, `warning: topic "mistyped" has no timers, and no node handles it`)
	require.NotEmpty(t, stdout)
}

// An export that fails leaves no file.
func TestExportThatFailsLeavesNoFile(t *testing.T) {
	b := setup(t)
	dir := t.TempDir()
	const moving = `{"shards":4,"from":1,"moving":true,"live":true,"since":1}`
	require.NoError(t, b.rdb.HSet(t.Context(), "timers_shards", b.topic, moving).Err())
	require.NoError(t, b.rdb.HIncrBy(t.Context(), "timers_shards", "", 1).Err())
	code, _, stderr := b.call("topics", "export", "TOPIC", "--out", filepath.Join(dir, "x"))
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, stderr, "its timers are being moved to 4 shards; finish that first")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// All topics are exported to a directory and imported from it; both can be continued.
func TestAllTopicsAreExportedAndImported(t *testing.T) {
	t.Parallel()
	from := &bundle{t: t, redis: "redis://" + redistest.Start(t).Addr}
	to := &bundle{t: t, redis: "redis://" + redistest.Start(t).Addr}
	topics := []string{"a/../b", "invoices", "prefix.mail", strings.Repeat("long ", 80) + "1", strings.Repeat("long ", 80) + "2"}
	for i, topic := range topics {
		from.fine("schedule", "-t", topic, "--id", "x", "--count", strconv.Itoa(i+1), "--in", "1h")
	}
	dir := filepath.Join(t.TempDir(), "backup")
	require.Empty(t, from.fine("topics", "export", "--all", "--out", dir))
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Len(t, files, len(topics))

	code, _, stderr := from.call("topics", "export", "--all", "--out", dir)
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, stderr, "is not empty; --continue keeps its files")
	require.NoError(t, os.Remove(files[1]))
	kept, err := os.Stat(files[0])
	require.NoError(t, err)
	from.fine("topics", "export", "--all", "--out", dir, "--continue")
	require.FileExists(t, files[1])
	same, err := os.Stat(files[0])
	require.NoError(t, err)
	require.True(t, os.SameFile(kept, same), "it is not written again")
	mail := filepath.Join(t.TempDir(), "mail")
	from.fine("--prefix", "prefix.", "topics", "export", "--all", "--out", mail)
	require.FileExists(t, filepath.Join(mail, "mail.jsonl"))

	broken, err := os.ReadFile(files[2])
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(files[2], broken[:len(broken)/2], 0o600))
	code, _, stderr = to.call("topics", "import", dir)
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, stderr, "2 of 5 files are stored; to continue with this one, add --from-file "+filepath.Base(files[2]))
	require.NoError(t, os.WriteFile(files[2], broken, 0o600))
	require.Len(t, objects(t, to.fine("topics", "import", dir, "--from-file", filepath.Base(files[2]), "-o", "json")), 3)
	require.Equal(t, from.fine("topics", "-o", "json"), to.fine("topics", "-o", "json"))

	code, _, _ = to.call("topics", "import", dir, "--topic", "other")
	require.Equal(t, cli.ExitUsage, code)
	code, _, stderr = to.call("topics", "import", dir, "--from-file", "none")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, stderr, "has no file none")
	code, _, _ = to.call("topics", "import", t.TempDir())
	require.Equal(t, cli.ExitError, code)
}
