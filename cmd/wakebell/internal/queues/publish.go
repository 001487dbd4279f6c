package queues

import (
	"context"
	"encoding/hex"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/wakebelltype"
)

type publishFlags struct {
	queue           wakebelltype.QueueKeys
	text, json, hex string
	key             string
	window          time.Duration

	given func(flag string) bool
}

func publishCommand(a *cli.App) *cobra.Command {
	f := &publishFlags{}
	cmd := &cobra.Command{
		Use:   "publish --queue QUEUE (--text | --json | --hex) BODY",
		Short: "Publish a message to a queue",
		Long: `Publishes a message and prints its id; or, if a message with the same --dedup-key
was published within the window, the word duplicate. The exit code is 0 in both
cases.

With -o json it prints one line with queue, id (for a duplicate: of the existing
message, if known) and fresh, true or false.`,
		Example: `  wakebell queue publish --queue mail --text hello
  wakebell queue publish --queue mail --json '{"to": 42}' --dedup-key welcome-42 --window 24h`,
		Args: cli.NoArgs,
	}
	nameFlag(cmd, &f.queue)
	flags := cmd.Flags()
	flags.StringVar(&f.text, "text", "", "text `body`")
	flags.StringVar(&f.json, "json", "", "JSON `body`, published as it is")
	flags.StringVar(&f.hex, "hex", "", "`body` of bytes, in hex")
	flags.StringVar(&f.key, "dedup-key", "", "suppress the message if one with this `key` was published within the window")
	cli.DurationVar(flags, &f.window, "window", time.Hour, "how long the key suppresses duplicates")
	cmd.MarkFlagsMutuallyExclusive("text", "json", "hex")
	cmd.MarkFlagsOneRequired("text", "json", "hex")
	f.given = flags.Changed
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, _ []string) error {
		return ask(ctx, a, func(c client) error { return publish(ctx, a, c, f) })
	})
	return cmd
}

func (f *publishFlags) body() ([]byte, error) {
	switch {
	case f.given("json"):
		if err := cli.CheckJSON(f.json); err != nil {
			return nil, err
		}
		return []byte(f.json), nil
	case f.given("hex"):
		raw, err := hex.DecodeString(f.hex)
		if err != nil {
			return nil, cli.Usagef("--hex: %v", err)
		}
		return raw, nil
	case !utf8.ValidString(f.text):
		return nil, cli.Usagef("--text: not valid UTF-8; --hex takes any bytes")
	}
	return []byte(f.text), nil
}

type publishedLine struct {
	Queue string `json:"queue"`
	ID    string `json:"id"`
	Fresh bool   `json:"fresh"`
}

func publish(ctx context.Context, a *cli.App, c queue.Publisher, f *publishFlags) error {
	body, err := f.body()
	if err != nil {
		return err
	}
	if f.given("dedup-key") && f.key == "" {
		return cli.Usagef("--dedup-key: empty")
	}
	if f.given("window") && !f.given("dedup-key") {
		return cli.Usagef("--window: requires --dedup-key")
	}
	q := queue.New[[]byte](f.queue.Name, append(cli.QueueOptions(f.queue), queue.DeduplicationWindow(f.window))...)
	published, err := c.Publish(ctx, q.Draft(body, queue.DeduplicationKey(f.key)))
	switch {
	case err != nil:
		return err
	case a.WantsJSON():
		return a.PrintJSON(publishedLine{a.Prefix + f.queue.Name, published[0].ID, published[0].Fresh})
	case !published[0].Fresh:
		return a.Printf("duplicate\n")
	}
	return a.Printf("%s\n", published[0].ID)
}
