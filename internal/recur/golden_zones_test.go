package recur

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// zoneCase is an entry of a Celery app in a zone, as a real RedBeat stored it, and the
// instants that it computed from it.
type zoneCase struct {
	Zone       string      `json:"zone"`
	Entry      string      `json:"entry"`
	Last       time.Time   `json:"last_run_at"`
	Definition string      `json:"definition"`
	Meta       string      `json:"meta_after_dispatch"`
	Next       []time.Time `json:"next"`
}

type zonesFile struct {
	Metas map[string]string `json:"meta_that_a_beat_writes_now"`
	Cases []zoneCase        `json:"cases"`
}

func goldenZones(t testing.TB) (file zonesFile) {
	t.Helper()
	raw, err := os.ReadFile("testdata/golden-beat-zones.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &file))
	require.Len(t, file.Cases, 252)
	return file
}

func zoneNamed(t testing.TB, name string) *time.Location {
	t.Helper()
	in, err := LoadZone(name)
	require.NoError(t, err)
	return in
}

// Entries of apps in seven zones are read and written back unchanged.
func TestEntriesOfOtherZonesAreReadAndWrittenBack(t *testing.T) {
	t.Parallel()
	for _, c := range goldenZones(t).Cases {
		raw := Raw{Definition: []byte(c.Definition), Meta: []byte(c.Meta)}
		e, err := Read(raw, "g", zoneNamed(t, c.Zone))
		require.NoError(t, err, "%s in %s", c.Entry, c.Zone)
		require.True(t, e.Meta.LastRunAt.Equal(c.Last), "%s in %s", c.Entry, c.Zone)
		require.JSONEq(t, c.Definition, string(e.Definition.Bytes()))
		checkStrictly(t, e.Raw())
	}
}

// Meta is written with the fields and the offset that a beat of the zone writes.
func TestMetaIsWrittenInZoneOfBeat(t *testing.T) {
	t.Parallel()
	file := goldenZones(t)
	for zone, meta := range file.Metas {
		e, err := Read(Raw{Definition: []byte(file.Cases[0].Definition), Meta: []byte(meta)}, "g", zoneNamed(t, zone))
		require.NoError(t, err, zone)
		require.JSONEq(t, meta, string(e.Raw().Meta), zone)
		require.Regexp(t, `"timezone":-?\d+\.0}`, string(e.Raw().Meta), "Python needs a float")
	}
}

// The instants are those of the peer, except at a change of the clock. There the peer
// computes with the offset of the last run, and so fires fixed times and whole days off
// by the change, and in autumn again: docs/schedules.md.
func TestInstantsOfOtherZonesAreThoseOfPeer(t *testing.T) {
	t.Parallel()
	differ := 0
	for _, c := range goldenZones(t).Cases {
		in := zoneNamed(t, c.Zone)
		e, err := Read(Raw{Definition: []byte(c.Definition), Meta: []byte(c.Meta)}, "g", in)
		require.NoError(t, err)
		var ours []time.Time
		for at := e.Meta.LastRunAt; len(ours) < len(c.Next); ours = append(ours, at) {
			at = e.when.Next(at)
		}
		differs := false
		for _, pair := range [][2][]time.Time{{c.Next, ours}, {ours, c.Next}} {
			previous := c.Last
			for _, at := range pair[0] {
				has := slices.ContainsFunc(pair[1], at.Equal)
				if !has && !at.After(pair[1][len(pair[1])-1]) {
					differs = true
					require.NotEqual(t, offsetAt(in, previous), offsetAt(in, at), "%s in %s: %v, %v", c.Entry, c.Zone, c.Next, ours)
				}
				previous = at
			}
		}
		if differs {
			differ++
		}
	}
	require.Equal(t, 20, differ)
}
