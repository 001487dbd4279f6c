package redistest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// program builds the program once for all tests of a package: they run in parallel, and each
// would compile the same packages, and link them, at the same time.
var program = sync.OnceValues(func() (path string, err error) {
	dir, err := os.MkdirTemp("", "wakebell-program")
	if err != nil {
		return "", fmt.Errorf("make a folder for the program: %w", err)
	}
	programDir = dir
	path = filepath.Join(dir, "wakebell")
	build := exec.Command("go", "build", "-o", path, "github.com/wakebell/wakebell/cmd/wakebell")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the program: %w\n%s", err, out)
	}
	return path, nil
})

// programDir is what Main removes.
var programDir string

// Program returns the path of the wakebell program, for tests that need a process. It needs Main.
func Program(t testing.TB) string {
	t.Helper()
	if !underMain.Load() {
		t.Fatal("redistest: Program needs a TestMain with Main, which removes it")
	}
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
