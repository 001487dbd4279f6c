package surface_test

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOptionsFitWhatTheyConfigure compiles handlers with each kind of option. An
// option that does not apply to the source or to RetuneLocal is a compile error.
func TestOptionsFitWhatTheyConfigure(t *testing.T) {
	t.Parallel()
	const (
		topic = "wakebell.Handle(wakebell.NewTopic[string](``), func(context.Context, wakebell.Timer[string]) error { return nil }, "
		mail  = "wakebell.HandleQueue(queue.New[string](``), func(context.Context, wakebell.Timer[string]) error { return nil }, "
		tune  = "new(wakebell.System).RetuneLocal(``, "
	)
	const (
		common = "wakebell.DiscardRejected(), wakebell.PanicBackoff(), wakebell.DeliveryWindow(1), wakebell.With(), wakebell.History(0)"
		tuning = "wakebell.MaxConcurrent(1), wakebell.LeaseTTL(1), wakebell.MaxLeaseAge(1), wakebell.PollingInterval(1), wakebell.MaxPollingInterval(1), wakebell.RetryBackoff(1, 1), wakebell.MaxAttempts(1), " +
			"wakebell.RateLimit(1, 1, 1), wakebell.MaxInFlight(1)"
		limits   = "wakebell.PerKey(1), wakebell.RateLimitByKey(1, 1, 1)"
		ofTopics = "HandlerOption"
		ofQueues = "QueueHandlerOption"
	)
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", compiled(t, "."))
	for expression, lacks := range map[string]string{
		topic + common + ", " + tuning + ", " + limits + ", wakebell.RetryOnLeaseExpiry())":                                                      "",
		mail + common + ", " + tuning + ", wakebell.KeepCompleted(1), wakebell.KeepFailed(1), wakebell.ErrorsAreFinal(), wakebell.AtMostOnce())": "",
		tune + tuning + ", " + limits + ")":      "",
		topic + "wakebell.KeepCompleted(1))":     ofTopics,
		topic + "wakebell.KeepFailed(1))":        ofTopics,
		topic + "wakebell.ErrorsAreFinal())":     ofTopics,
		topic + "wakebell.AtMostOnce())":         ofTopics,
		mail + "wakebell.RetryOnLeaseExpiry())":  ofQueues,
		mail + "wakebell.PerKey(1))":             ofQueues,
		mail + "wakebell.RateLimitByKey(1,1,1))": ofQueues,
		tune + "wakebell.DiscardRejected())":     "TopicTuningOption",
		tune + "wakebell.With())":                "TopicTuningOption",
		tune + "wakebell.History(0))":            "TopicTuningOption",
		tune + "wakebell.DeliveryWindow(1))":     "TopicTuningOption",
		tune + "wakebell.RetryOnLeaseExpiry())":  "TopicTuningOption",
		tune + "wakebell.KeepCompleted(1))":      "TopicTuningOption",
	} {
		err := compiles(t, fset, imports, expression)
		if lacks == "" {
			require.NoError(t, err, expression)
			continue
		}
		require.ErrorContains(t, err, "does not implement wakebell."+lacks, expression)
	}
}

// compiles type-checks an expression.
func compiles(t *testing.T, fset *token.FileSet, imports types.Importer, expression string) error {
	t.Helper()
	file, err := parser.ParseFile(fset, "snippet.go", `package snippet

import (
	"context"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/queue"
)

var (
	_ context.Context
	_ queue.Queue[string]
	_ = `+expression+`
)
`, 0)
	require.NoError(t, err)
	_, err = (&types.Config{Importer: imports}).Check("snippet", fset, []*ast.File{file}, nil)
	return err
}
