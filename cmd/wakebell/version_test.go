package main

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"}
	date := debug.BuildSetting{Key: "vcs.time", Value: "2026-11-22T20:00:00Z"}
	changed := debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	for want, info := range map[string]*debug.BuildInfo{
		"unknown": {},
		"v0.1.0":  {Main: debug.Module{Version: "v0.1.0"}}, // go install of a version has no commit
		"v0.1.0 (commit 0123456789ab, 2026-11-22T20:00:00Z)":               {Main: debug.Module{Version: "v0.1.0"}, Settings: []debug.BuildSetting{commit, date}},
		"(devel) (commit 0123456789ab with changes, 2026-11-22T20:00:00Z)": {Main: debug.Module{Version: "(devel)"}, Settings: []debug.BuildSetting{commit, date, changed}},
	} {
		require.Equal(t, want, versionOf(info))
	}
}
