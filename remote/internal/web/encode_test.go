package web

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTextsAreJSON(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for c := range rune(0x300) {
		all.WriteRune(c)
	}
	for _, text := range []string{"", "a", all.String(), "日本 \u2028 \U0001F600 </script>"} {
		var back string
		require.NoError(t, json.Unmarshal(appendText(nil, text), &back))
		require.Equal(t, text, back)
		require.Equal(t, appendText(nil, text), appendText(nil, []byte(text)))
	}
}
