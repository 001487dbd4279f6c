package show

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/wakebell/wakebell/internal/bodytext"
)

// nested is a protobuf message in so many others.
func nested(inner []byte, levels int) []byte {
	for range levels {
		inner = append(protowire.AppendTag(nil, 1, protowire.BytesType), protowire.AppendBytes(nil, inner)...)
	}
	return inner
}

// The text of any body has at most twice the bytes that are shown of it.
func TestTextsOfBodiesAreBounded(t *testing.T) {
	t.Parallel()
	const proto = "application/x-protobuf"
	for name, c := range map[string]struct{ kind, body, format string }{
		"deep JSON":       {"application/json", strings.Repeat("[", 9990) + strings.Repeat("]", 9990), "JSON"},
		"deep objects":    {"", strings.Repeat(`{"a":`, 9990) + "1" + strings.Repeat("}", 9990), "JSON"},
		"invisible JSON":  {"", `"` + strings.Repeat("\x7f", 60<<10) + `"`, "JSON"},
		"invisible text":  {"text/plain", strings.Repeat("\x1b", 1<<20), "text"},
		"large text":      {"text/plain", strings.Repeat("é", 1<<20), "text"},
		"bytes":           {"", strings.Repeat("\xff\xfe", 1<<20), "hex"},
		"many fields":     {proto, string(nested(bytes.Repeat([]byte{8, 1}, 20_000), maxDepth)), "protobuf"},
		"nested messages": {proto, string(nested(nil, 5000)), "protobuf"},
		"one field":       {proto, string(nested(bytes.Repeat([]byte{0xff}, 60<<10), 1)), "protobuf"},
	} {
		for _, shown := range []int{1 << 10, 16 << 10, bodytext.MaxShown} {
			b := NewBody([]byte(c.body), c.kind, shown)
			require.LessOrEqual(t, len(b.Text), bodytext.Limit(shown), "%s, %d", name, shown)
			require.Equal(t, len(c.body), b.Size)
			if shown == bodytext.MaxShown {
				require.Equal(t, c.format, b.Format, name)
			}
			if !b.Cut {
				require.GreaterOrEqual(t, 2*len(b.Text), min(len(c.body), shown)/4, name)
			}
		}
	}
}

func FuzzBody(f *testing.F) {
	f.Add("application/json", []byte(`{"a": [1]}`))
	f.Add("application/x-protobuf", nested([]byte{8, 1}, 3))
	f.Add("", []byte("a\xff"))
	f.Fuzz(func(t *testing.T, kind string, body []byte) {
		b := NewBody(body, kind, 256)
		require.LessOrEqual(t, len(b.Text), bodytext.Limit(256))
		require.Equal(t, len(body) == 0, b.Format == "empty")
	})
}
