// Command wakebell runs timers, schedules and inspects them, and shows what
// they are. "wakebell --help" tells the rest.
package main

import (
	"context"
	"os"

	"github.com/redis/go-redis/v9/logging"
)

func main() {
	logging.Disable() // what go-redis meets is in the errors it returns
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
