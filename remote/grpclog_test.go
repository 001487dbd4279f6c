package remote_test

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/grpclog"

	"github.com/wakebell/wakebell/remote"
)

func TestGRPCLogsThroughSlogWithBound(t *testing.T) {
	t.Parallel()
	log := &lines{}
	logger := remote.GRPCLogger(slog.New(slog.NewTextHandler(log, nil)))
	for i := range 1000 {
		logger.Errorf("bogus greeting: \x1b[31m\nlevel=ERROR %d", i)
		logger.Warningf("kind %d: x", i)
		logger.Info("nothing")
	}
	all := log.with("")
	require.Len(t, all, 60)
	require.Len(t, log.with("bogus greeting"), 10)
	require.Empty(t, log.with("\x1b"))
	require.Empty(t, log.with("nothing"))
}

func ExampleGRPCLogger() {
	// Once, in main, before anything uses gRPC.
	grpclog.SetLoggerV2(remote.GRPCLogger(slog.Default()))
}
