package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPayloadKeys shows encrypted bodies with their keys, and otherwise how they are
// encoded.
func TestPayloadKeys(t *testing.T) {
	b := setup(t)
	keys := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, os.WriteFile(keys, []byte("k1 a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=\n"), 0o600))
	b.fine("schedule", "-t", "TOPIC", "--id", "x", "--at", "2031-01-02T15:04:05Z", "--json", `{"a":1}`, "--payload-keys", keys)
	b.fine("queue", "publish", "--queue", "TOPIC", "--text", "hello", "--payload-keys", keys)

	sealed := b.fine("get", "-t", "TOPIC", "x")
	require.Contains(t, sealed, "encrypted with key k1, 51 bytes")
	require.NotContains(t, sealed, "base64")
	opened := b.fine("get", "-t", "TOPIC", "x", "-o", "json", "--payload-keys", keys)
	require.Contains(t, opened, `"content_type":"application/json"`)
	require.Contains(t, opened, `"encoding":"encrypted with key k1, 51 bytes","body":{"a":1}`)
	require.Contains(t, b.fine("ls", "-t", "TOPIC", "--search", `"a":1`, "--content", "--payload-keys", keys), "x")
	require.Contains(t, b.fine("queue", "ls", "--queue", "TOPIC"), "encrypted with key k1, 49 bytes")
	require.Contains(t, b.fine("queue", "ls", "--queue", "TOPIC", "--payload-keys", keys), "hello")

	other := filepath.Join(t.TempDir(), "other")
	require.NoError(t, os.WriteFile(other, []byte("k2 a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=\n"), 0o600))
	require.Contains(t, b.fine("get", "-t", "TOPIC", "x", "--payload-keys", other), `unknown key "k1"`)
}
