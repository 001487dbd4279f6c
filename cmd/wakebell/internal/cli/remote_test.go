package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAddressesOfNodes(t *testing.T) {
	t.Parallel()
	for address, encrypted := range map[string]bool{
		"127.0.0.1:1": false, "[::1]:1": false, "localhost:1": false, "10.0.0.5:1": true, "node:1": true,
		"tls://127.0.0.1:1": true, "plain://node:1": false,
	} {
		_, is := splitRemote(address, tlsFlags{})
		require.Equal(t, encrypted, is, address)
	}
	at, is := splitRemote("127.0.0.1:1", tlsFlags{ca: "f"})
	require.True(t, is)
	require.Equal(t, "127.0.0.1:1", at)
	at, _ = splitRemote("tls://node:1", tlsFlags{})
	require.Equal(t, "node:1", at)
}
