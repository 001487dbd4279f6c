//go:generate sh -c "go run . config schema > ../../docs/public/wakebell.schema.json"

// Command wakebell schedules, handles and inspects timers. See "wakebell --help".
package main

import (
	"context"
	"os"

	"github.com/redis/go-redis/v9/logging"
	"google.golang.org/grpc/grpclog"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/node"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/process"
	"github.com/wakebell/wakebell/remote"
)

func main() {
	if code, done := process.RunAsInit(); done {
		os.Exit(code)
	}
	grpclog.SetLoggerV2(remote.GRPCLogger(node.GRPCLogger())) // before anything uses gRPC
	logging.Disable()                                         // go-redis returns its errors as well
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
