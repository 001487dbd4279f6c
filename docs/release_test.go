//go:build unix

package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A release of a tree with changes would have programs whose version ends with +dirty.
// The tools may be a link there: that is no change.
func TestReleaseRefusesTreeWithChanges(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"release.sh", "release-check.sh"} {
		dir := t.TempDir()
		for _, name := range []string{".gitignore", "scripts/" + script} {
			text, err := os.ReadFile(filepath.Join("..", name))
			require.NoError(t, err)
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o750))
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o700)) //nolint:gosec // a script
		}
		require.NoError(t, os.Symlink(dir, filepath.Join(dir, ".tools")))
		bash := func(line string) string {
			cmd := exec.CommandContext(t.Context(), "bash", "-ec", line)
			cmd.Dir = dir
			out, _ := cmd.CombinedOutput()
			return string(out)
		}
		bash("git init -q . && git add -A . && git -c user.name=n -c user.email=e@localhost commit -qm first")
		const refusal = "the tree has changes that are not committed"
		require.NotContains(t, bash("scripts/"+script+" out"), refusal, "scripts/tool.sh is missing there") // it ends at once
		bash("rm -rf out; touch added")
		require.Contains(t, bash("scripts/"+script+" out"), refusal)
	}
}

// Packages have all units, and stop them before they are removed.
func TestPackagesHaveScripts(t *testing.T) {
	t.Parallel()
	var config struct {
		Packages []struct {
			Scripts  map[string]string `yaml:"scripts"`
			Contents []struct {
				Destination string `yaml:"dst"`
			} `yaml:"contents"`
		} `yaml:"nfpms"`
	}
	readYAML(t, "../.goreleaser.yaml", &config)
	require.Len(t, config.Packages, 1)
	for _, kind := range []string{"postinstall", "preremove"} {
		require.FileExists(t, filepath.Join("..", config.Packages[0].Scripts[kind]), kind)
	}
	removed, err := os.ReadFile("../deploy/package/removed.sh")
	require.NoError(t, err)
	units, err := filepath.Glob("../deploy/systemd/*.service")
	require.NoError(t, err)
	require.Len(t, units, 3)
	var installed []string
	for _, c := range config.Packages[0].Contents {
		installed = append(installed, c.Destination)
	}
	for _, unit := range units {
		name := filepath.Base(unit)
		require.Regexp(t, `systemctl disable --now .*\b`+name+`\b`, string(removed))
		require.Contains(t, installed, "/usr/lib/systemd/system/"+name)
	}
}
