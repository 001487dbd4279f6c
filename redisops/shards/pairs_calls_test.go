package shards

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// callsThatRead are the methods of the public Client that change no timer of a topic.
var callsThatRead = []string{
	"Audit", "Connection", "Control", "DeadLetter", "DeadLetters", "Diagnose", "ExportTopic", "Get", "History", "LastDead", "List", "Overview",
	"Payloads", "Prefix", "Queues", "RecordChange", "Schedules", "Shards", "Stats", "Tail", "Throughput", "Topics",
}

// TestModelHasEveryCallThatChangesTimers checks that a new method of the public Client
// is in the table of the model, or is one that only reads.
func TestModelHasEveryCallThatChangesTimers(t *testing.T) {
	t.Parallel()
	modelled := slices.Clone(callsThatRead)
	for _, o := range operations {
		modelled = append(modelled, o.calls...)
	}
	files, err := filepath.Glob("../../*.go")
	require.NoError(t, err)
	var methods []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || !f.Name.IsExported() {
				continue
			}
			star, ok := f.Recv.List[0].Type.(*ast.StarExpr)
			if !ok {
				continue
			}
			if of, ok := star.X.(*ast.Ident); ok && of.Name == "Client" {
				methods = append(methods, f.Name.Name)
			}
		}
	}
	require.Subset(t, modelled, methods, "a row of operations in pairs_table_test.go, or callsThatRead")
	require.Subset(t, methods, modelled, "methods that no longer exist")
}
