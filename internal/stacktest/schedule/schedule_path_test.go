package schedule_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/opened"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
)

// TestNoCoalescingAndNoPayloadsApart checks by the commands that Redis counts that a
// client and a System with these settings send every schedule by itself, and no
// transaction, neither for a schedule nor for a claim.
func TestNoCoalescingAndNoPayloadsApart(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	topic, large := wakebell.NewTopic[string]("t"), wakebell.NewTopic[string]("large")
	var handled atomic.Int32
	conn := conntest.Switched(t, rdb, connection.Config{}, opened.Switches{NoCoalescing: true, NoPayloadsApart: true})
	client, err := wakebell.NewClient(conn)
	require.NoError(t, err)
	sys, err := wakebell.New(stacktest.ActorSystem(), conn, wakebell.Config{
		Handlers: []wakebell.Handler{wakebell.Handle(large, func(context.Context, wakebell.Timer[string]) error {
			handled.Add(1)
			return nil
		})},
	})
	require.NoError(t, err)
	for _, c := range []*wakebell.Client{
		client, sys.Client(),
	} {
		drafts := make([]wakebell.Draft, 200)
		for range 2 { // the first finds the keys sound
			for i := range drafts {
				drafts[i] = topic.Draft("x", wakebell.ID(fmt.Sprint(i)), wakebell.In(time.Hour))
			}
			_, err := c.Schedule(t.Context(), drafts...)
			require.NoError(t, err)
		}
		require.NoError(t, rdb.ConfigResetStat(t.Context()).Err())
		const callers = 50
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() { _, _ = topic.Schedule(context.Background(), c, "x", wakebell.ID(fmt.Sprint(i))) })
		}
		all.Wait()
		stats := rdb.Info(t.Context(), "commandstats").Val()
		require.Contains(t, stats, fmt.Sprintf("cmdstat_evalsha:calls=%d,", callers))
		_, err := c.Schedule(t.Context(), drafts...)
		require.NoError(t, err)
		require.NotContains(t, rdb.Info(t.Context(), "commandstats").Val(), "cmdstat_multi:")
	}
	_, err = sys.Client().Schedule(t.Context(), large.Draft(strings.Repeat("x", 100<<10)), large.Draft(strings.Repeat("x", 100<<10)))
	require.NoError(t, err)
	require.NoError(t, sys.Start(t.Context()))
	stacktest.Eventually(t, func() bool { return handled.Load() == 2 })
	require.NoError(t, sys.Stop())
	require.NotContains(t, rdb.Info(t.Context(), "commandstats").Val(), "cmdstat_multi:")
}

// pathRow matches a function of the way from Schedule to the script, with its file.
var pathRow = regexp.MustCompile("(?m)^\\| \\d+ \\| `([^`]+)` \\| `([^`]+)` \\|")

// TestWayOfScheduleIsDocumented checks that docs/architecture.md lists at most
// twelve functions, that they exist, and that a schedule passes no others of this
// module above its EVALSHA.
func TestWayOfScheduleIsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(stacktest.Root + "docs/architecture.md")
	require.NoError(t, err)
	var listed []string
	for _, row := range pathRow.FindAllStringSubmatch(string(text), -1) {
		require.Contains(t, functionsOf(t, row[2]), row[1], "of %s", row[2])
		listed = append(listed, row[1])
	}
	require.NotEmpty(t, listed)
	require.LessOrEqual(t, len(listed), 12)

	stack := &stackOfScript{}
	rdb := redistest.Shared(t)
	rdb.AddHook(stack)
	_, err = wakebell.NewTopic[string](redistest.Name(t)).Schedule(t.Context(), stacktest.Client(t, rdb, connection.Config{}), "x")
	require.NoError(t, err)
	require.Contains(t, stack.functions, "Topic.Schedule")
	for _, name := range stack.functions {
		require.Contains(t, listed, name)
	}
}

// functionsOf returns the functions that a file declares, methods as "Type.Method".
func functionsOf(t *testing.T, file string) (names []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), stacktest.Root+file, nil, 0)
	require.NoError(t, err)
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		name := f.Name.Name
		if f.Recv != nil {
			receiver := f.Recv.List[0].Type
			if star, ok := receiver.(*ast.StarExpr); ok {
				receiver = star.X
			}
			if generic, ok := receiver.(*ast.IndexExpr); ok {
				receiver = generic.X
			}
			name = receiver.(*ast.Ident).Name + "." + name
		}
		names = append(names, name)
	}
	return names
}

// stackOfScript is a client hook that records which functions of this module, other
// than tests, are on the stack of an EVALSHA.
type stackOfScript struct{ functions []string }

var (
	closure  = regexp.MustCompile(`(\.func\d+|\.\d+|\[\.\.\.\])`)
	brackets = strings.NewReplacer("(*", "", ")", "")
)

func (s *stackOfScript) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		callers := make([]uintptr, 100)
		frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
		for more := cmd.Name() == "evalsha"; more; {
			var f runtime.Frame
			f, more = frames.Next()
			_, name, ours := strings.Cut(f.Function, "github.com/wakebell/wakebell")
			if !ours || strings.HasSuffix(f.File, "_test.go") || strings.Contains(f.File, "/internal/stacktest/") {
				continue
			}
			_, name, _ = strings.Cut(name[strings.LastIndex(name, "/")+1:], ".") // without the package
			parts := strings.Split(brackets.Replace(closure.ReplaceAllString(name, "")), ".")
			name = strings.Join(parts[:min(2, len(parts))], ".") // an inlined closure has the name twice
			s.functions = append(s.functions, name)
		}
		return next(ctx, cmd)
	}
}

func (s *stackOfScript) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (s *stackOfScript) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}
