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

// A release is prepared by one command: a dated section, which is the message of a tag.
func TestReleaseIsPrepared(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"release-prepare.sh", "release-notes.sh"} {
		text, err := os.ReadFile(filepath.Join("../scripts", name))
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "scripts"), 0o750))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "scripts", name), text, 0o700)) //nolint:gosec // a script
	}
	bash := func(line string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "bash", "-ec", line)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=n", "GIT_AUTHOR_EMAIL=e@localhost", "GIT_COMMITTER_NAME=n", "GIT_COMMITTER_EMAIL=e@localhost")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	fine := func(line string) string {
		out, err := bash(line)
		require.NoError(t, err, out)
		return out
	}
	const old = "# Changelog\n\nIntroduction.\n\n## [Unreleased]\n\n- added a\n\n## [0.2.0] - not tagged yet\n\nText.\n\n### Part\n\n- b\n\n## [0.1.0] - 2026-01-02\n\n- c\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "CHANGELOG.md"), []byte(old), 0o600))
	fine("git init -q . && git add -A . && git commit -qm first")
	for _, refused := range []struct{ line, says string }{
		{"scripts/release-prepare.sh 0.2.0", "no tag such as v0.1.0"},
		{"git tag v0.1.0 && scripts/release-prepare.sh v0.1.0", "there is a tag v0.1.0"},
		{"scripts/release-notes.sh v0.3.0", "nothing about v0.3.0"},
		{"touch added && scripts/release-prepare.sh v0.2.0", "changes that are not committed"},
	} {
		out, err := bash(refused.line)
		require.Error(t, err, refused.line)
		require.Contains(t, out, refused.says)
	}
	require.Equal(t, "first\n?? added\n", fine("git log --format=%s && git status --short"), "a refusal changes nothing")
	fine("rm added && scripts/release-prepare.sh v0.2.0")
	text, err := os.ReadFile(filepath.Join(dir, "CHANGELOG.md"))
	require.NoError(t, err)
	require.Regexp(t, `^# Changelog\n\nIntroduction.\n\n## \[Unreleased\]\n\n## \[0.2.0\] - \d{4}-\d\d-\d\d\n\nText.\n\n### Part\n\n- b\n\n### Since the draft\n\n- added a\n\n## \[0.1.0\] - 2026-01-02\n\n- c\n$`, string(text))
	notes := fine("scripts/release-notes.sh v0.2.0")
	require.Equal(t, "Text.\n\n### Part\n\n- b\n\n### Since the draft\n\n- added a\n", notes)
	require.Equal(t, notes, fine("git for-each-ref --format='%(contents)' refs/tags/v0.2.0 | sed '$d'"))
	require.Empty(t, fine("git status --porcelain"))
	out, err := bash("scripts/release-prepare.sh v0.3.0") // nothing is unreleased
	require.Error(t, err)
	require.Contains(t, out, "nothing about v0.3.0")
	require.Empty(t, fine("git status --porcelain"))
}
