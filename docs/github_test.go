//go:build unix

package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

var (
	makeTarget = regexp.MustCompile(`\bmake ([a-z-]+)`)
	script     = regexp.MustCompile(`(?:\.ci/run\b|\bscripts/[\w-]+\.sh)`)
)

type workflow struct {
	Permissions map[string]string `yaml:"permissions"`
	Jobs        map[string]struct {
		Strategy struct {
			Matrix map[string][]string `yaml:"matrix"`
		} `yaml:"strategy"`
		Steps []struct {
			Uses string `yaml:"uses"`
			Run  string `yaml:"run"`
		} `yaml:"steps"`
	} `yaml:"jobs"`
}

// Every command of a workflow that is of this repository exists here.
func TestWorkflowsRunWhatExists(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile("../Makefile")
	require.NoError(t, err)
	files, err := filepath.Glob("../.github/workflows/*.yaml")
	require.NoError(t, err)
	require.Len(t, files, 3)
	for _, name := range files {
		var w workflow
		readYAML(t, name, &w)
		require.Equal(t, map[string]string{"contents": "read"}, w.Permissions, "%s: permissions of the whole workflow", name)
		require.NotEmpty(t, w.Jobs, name)
		for job, j := range w.Jobs {
			require.NotEmpty(t, j.Steps, "%s: %s", name, job)
			for _, step := range j.Steps {
				require.NotEqual(t, step.Uses == "", step.Run == "", "%s: a step uses an action or runs a command", name)
				for _, target := range makeTarget.FindAllStringSubmatch(step.Run, -1) {
					require.Regexp(t, `(?m)^`+target[1]+`:`, string(makefile), name)
				}
				for _, file := range script.FindAllString(step.Run, -1) {
					require.FileExists(t, filepath.Join("..", file), name)
				}
			}
		}
	}
}

func TestChecksRunOnBothArchitectures(t *testing.T) {
	t.Parallel()
	var w workflow
	readYAML(t, "../.github/workflows/ci.yaml", &w)
	job := w.Jobs["checks"]
	require.Equal(t, []string{"ubuntu-24.04", "ubuntu-24.04-arm"}, job.Strategy.Matrix["runner"])
	require.Contains(t, job.Steps[len(job.Steps)-1].Run, ".ci/run")
}

// Dependabot watches every module, and the other files are YAML.
func TestDependabotWatchesEveryModule(t *testing.T) {
	t.Parallel()
	var d struct {
		Updates []struct {
			Ecosystem string `yaml:"package-ecosystem"`
			Directory string `yaml:"directory"`
		} `yaml:"updates"`
	}
	readYAML(t, "../.github/dependabot.yml", &d)
	var watched []string
	for _, u := range d.Updates {
		if u.Ecosystem == "gomod" {
			watched = append(watched, strings.TrimPrefix(u.Directory, "/"))
		}
	}
	require.ElementsMatch(t, moduleFolders(t), watched)
	templates, err := filepath.Glob("../.github/ISSUE_TEMPLATE/*")
	require.NoError(t, err)
	require.Len(t, templates, 3)
	for _, name := range templates {
		readYAML(t, name, new(map[string]any))
	}
}

// moduleFolders returns the folders with a go.mod.
func moduleFolders(t *testing.T) []string {
	t.Helper()
	var folders []string
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != ".." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || d.Name() == "testdata"):
			return fs.SkipDir
		case d.Name() == "go.mod":
			folder, _ := filepath.Rel("..", filepath.Dir(path))
			folders = append(folders, strings.TrimPrefix(filepath.ToSlash(folder), "."))
		}
		return nil
	}))
	return folders
}

func readYAML(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, into), name)
}
