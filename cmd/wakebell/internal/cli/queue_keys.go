package cli

import (
	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/wakebelltype"
)

// SeparatorFlag adds the flags for the names of a queue's keys.
func SeparatorFlag(cmd *cobra.Command, q *wakebelltype.QueueKeys) {
	cmd.Flags().StringVar(&q.Separator, "separator", "::", "`text` between the name of a queue and the suffix of a key")
	cmd.Flags().StringVar(&q.DeadLetters, "dead-letter-key", "", "`key` of the dead letters (default the queue, the separator, dlq)")
}

// QueueOptions returns the options for the names of a queue's keys.
func QueueOptions(q wakebelltype.QueueKeys) []queue.Option {
	options := []queue.Option{queue.KeySeparator(q.Separator)}
	if q.DeadLetters != "" {
		options = append(options, queue.DeadLetterKey(q.DeadLetters))
	}
	return options
}
