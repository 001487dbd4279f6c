//go:build unix

// Package docs_test follows the documents: it writes the files that they show, runs
// their commands with the program and a real redis-server, and compares the output.
// "go test ./docs -update" writes the present output into the documents; read the
// difference.
package docs_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
)

var update = flag.Bool("update", false, "write the documents' outputs")

func TestMain(m *testing.M) { redistest.Main(m) }

// program builds the command line into a new directory.
func program(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", dir, "../cmd/wakebell").CombinedOutput()
	require.NoError(t, err, string(out))
	return dir
}

func TestDocumentsShowRealOutput(t *testing.T) {
	t.Parallel()
	bin := program(t)
	checkout, err := filepath.Abs("..")
	require.NoError(t, err)
	for _, name := range []string{"first.md", "http.md", "start.md", "operations.md", "guides/capacity.md", "guides/migrate.md", "guides/security.md"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			d, err := parse(string(text))
			require.NoError(t, err)
			server := redistest.Start(t, "--appendonly", "yes")
			names := map[string]string{"127.0.0.1:6379": server.Addr, "127.0.0.1:7070": redistest.Address(t), "127.0.0.1:8081": redistest.Address(t)}
			if name == "first.md" { // its programs name the port alone
				_, port, _ := strings.Cut(redistest.Address(t), ":")
				names["8080"] = port
			}
			dir := t.TempDir()
			w := &walk{
				t: t, dir: dir, update: *update,
				shell: newShell(t, dir,
					"PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"),
					"CHECKOUT="+checkout,
					// The module cache has all dependencies, so nothing is
					// downloaded. The other settings are those of a user.
					"GOPROXY=off", "GOFLAGS=", "GOWORK=off", "NPM_CONFIG_LOGLEVEL=error"),
				standIns: standIns,
				names:    names,
			}
			after := w.through(d)
			if *update {
				require.NoError(t, os.WriteFile(name, []byte(after), 0o600))
			}
		})
	}
}

// getModule does in a module what "go get" of this module does, which would download the
// go.mod files of modules that nothing here is built with. As there, go.sum has the sums of
// the packages that were asked for, and no others: so a document that forgets to get what its
// test imports fails.
const getModule = `
		sums() {
			(cd "$CHECKOUT" && go list -deps -f '{{with .Module}}{{.Path}} {{.Version}}{{end}}' "$@") | sort -u >asked &&
			awk 'NR == FNR { asked[$1, $2]; next } $2 ~ /go.mod$/ || ($1, $2) in asked' asked "$CHECKOUT/go.sum" >go.sum && rm asked
		}
		{ grep ^module go.mod; grep -v ^module "$CHECKOUT/go.mod"; } >mod && mv mod go.mod &&
		go mod edit -require=github.com/wakebell/wakebell@v0.0.0 -replace=github.com/wakebell/wakebell="$CHECKOUT" &&
		sums .`

// standIns replaces commands that download this module with commands that use the
// checkout.
var standIns = map[string]string{
	"go install github.com/wakebell/wakebell/cmd/wakebell@latest": "true",
	"python3 -m venv .venv && . .venv/bin/activate":               "true",
	"pip install --quiet wakebell": `
		export PYTHONPATH="$CHECKOUT/clients/python/src" PYTHONDONTWRITEBYTECODE=1
		PATH=/usr/bin:$PATH # the interpreter that has the packages of "make setup"`,
	"npm install --silent wakebell typescript @types/node": `
		modules="$CHECKOUT/clients/typescript/node_modules" && mkdir -p node_modules/wakebell &&
		for module in "$modules"/* "$modules"/.bin; do ln -s "$module" node_modules/; done &&
		cp "$CHECKOUT/clients/typescript/package.json" node_modules/wakebell/ &&
		(cd "$CHECKOUT/clients/typescript" && node node_modules/typescript/bin/tsc -p tsconfig.build.json --outDir "$OLDPWD/node_modules/wakebell/dist")`,
	"go get github.com/wakebell/wakebell@latest": getModule,
	"go get -t .": "sums . ./wakebelltest",
}
