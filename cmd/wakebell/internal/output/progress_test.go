package output

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"
)

func TestProgressAppearsAfterSecondAndGoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := NewProgress(&out, Screen{Columns: 70}, "cancel", 1000)
		p.Add(10)
		require.Empty(t, out.String(), "a short command shows none")
		for range 4 {
			<-time.After(time.Second)
			p.Add(100)
		}
		require.Regexp(t, `\rcancel  41 %  \[=+> +\]  410 of 1000  \d+/s  \d+s left\x1b\[K$`, out.String())
		for _, line := range strings.Split(out.String(), "\r") {
			require.Less(t, ansi.StringWidth(line), 70)
		}
		p.Set(1200)
		<-time.After(time.Second)
		p.Set(1200)
		require.Contains(t, out.String(), "1200 of 1200", "more were added meanwhile")
		p.Clear()
		p.End()
		require.True(t, strings.HasSuffix(out.String(), "\r\x1b[K"))
		length := out.Len()
		<-time.After(time.Second)
		p.Add(1)
		p.End()
		require.Equal(t, length, out.Len(), "after its end nothing is shown")
	})
}

func TestProgressOfUnknownNumber(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := NewProgress(&out, Screen{Columns: 70}, "list", 0)
		<-time.After(2 * time.Second)
		p.Add(100)
		require.Regexp(t, `^\rlist  100  50/s\x1b\[K$`, out.String())
	})
	var none *Progress
	none.Add(1)
	none.Set(1)
	none.Clear()
	none.End()
	require.Nil(t, NewProgress(nil, Screen{}, "x", 1), "not a terminal")
}

func TestProgressOfTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := NewProgress(&out, Screen{Columns: 70}, "check", -1)
		<-time.After(3 * time.Second)
		p.Set(0)
		require.Equal(t, "\rcheck  3.0s\x1b[K", out.String())
	})
}
