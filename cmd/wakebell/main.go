// Command wakebell runs timers, schedules and inspects them, and shows what
// they are. "wakebell --help" tells the rest.
package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/redis/go-redis/v9/logging"
	"google.golang.org/grpc/grpclog"

	"github.com/wakebell/wakebell/remote"
)

func main() {
	grpclog.SetLoggerV2(remote.GRPCLogger(slog.New(grpcLog))) // before anything uses gRPC
	logging.Disable()                                         // what go-redis meets is in the errors it returns
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
