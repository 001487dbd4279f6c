package faultproxy

import (
	"bufio"
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// Commands are passed on byte for byte.
func FuzzReadCommand(f *testing.F) {
	f.Add([]byte("*2\r\n$3\r\nGET\r\n$1\r\nx\r\n"))
	f.Add([]byte("*1\r\n$-1\r\n"))
	f.Add([]byte("*-1\r\n"))
	f.Add([]byte("*1\r\n$99999999999\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		raw, words, err := readCommand(bufio.NewReader(bytes.NewReader(in)))
		if err == nil {
			require.True(t, bytes.HasPrefix(in, raw))
			require.NotEmpty(t, words)
		}
	})
}

func FuzzReadReply(f *testing.F) {
	for _, in := range []string{
		"+OK\r\n", "-ERR x\r\n", ":1\r\n", "$-1\r\n", "$1\r\nx\r\n", "*2\r\n:1\r\n*0\r\n", "%1\r\n+a\r\n+b\r\n",
		">2\r\n+message\r\n+x\r\n+OK\r\n", "|1\r\n+a\r\n+b\r\n:1\r\n", "*-1\r\n", "_\r\n", "*99999999999\r\n", "?\r\n",
	} {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		raw, err := readReply(bufio.NewReader(bytes.NewReader(in)))
		if err == nil {
			require.True(t, bytes.HasPrefix(in, raw))
		}
	})
}
