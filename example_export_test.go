package wakebell_test

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/wakebelltype"
)

// A topic is written to a file, as a backup.
func ExampleClient_ExportTopic() {
	backup := func(ctx context.Context, client *wakebell.Client, file io.Writer) error {
		for progress, err := range client.ExportTopic(ctx, "invoices", file) {
			if err != nil {
				return err // the file is not complete
			}
			fmt.Println(progress.Timers, "of", progress.Total)
		}
		return nil
	}
	_ = backup
}

// What was exported is stored again; timers that exist stay as they are.
func ExampleClient_ImportTopic() {
	restore := func(ctx context.Context, client *wakebell.Client) error {
		file, err := os.Open("invoices.jsonl")
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }() // it was only read
		var last wakebelltype.Imported
		for progress, err := range client.ImportTopic(ctx, file, wakebelltype.ImportOptions{}) {
			if last = progress; err != nil {
				return fmt.Errorf("stored up to line %d: %w", last.Line, err)
			}
		}
		fmt.Println(last.Stored, "stored,", last.Existed, "existed")
		return nil
	}
	_ = restore
}
