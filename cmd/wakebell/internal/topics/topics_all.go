package topics

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/wakebelltype"
)

// exportedSuffix ends the name of the file of a topic.
const exportedSuffix = ".jsonl"

// maxFileName is how long the name of a file is, without the suffix; file systems allow 255
// bytes.
const maxFileName = 180

// fileOf returns the name of the file of a topic. Long names are cut, and made different by
// a hash. Import does not read it: the topic is in the file.
func fileOf(topic string) string {
	name := url.PathEscape(topic)
	if len(name) > maxFileName {
		sum := sha256.Sum256([]byte(topic))
		name = name[:maxFileName] + "-" + hex.EncodeToString(sum[:8])
	}
	return name + exportedSuffix
}

// exportAll writes each listed topic with the prefix to a file of a directory. A file appears
// when it is complete, so those that are there need not be written again.
func exportAll(ctx context.Context, a *cli.App, c *wakebell.Client, dir string, resumes bool) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("write %s: %w", dir, err)
	}
	if entries, err := os.ReadDir(dir); err != nil {
		return fmt.Errorf("write %s: %w", dir, err)
	} else if len(entries) > 0 && !resumes {
		return cli.Usagef("--out: %s is not empty; --continue keeps its files and writes the others", output.Escape(dir))
	}
	written, kept := 0, 0
	for full, err := range c.Topics(ctx, false, wakebelltype.Page{}) {
		if err != nil {
			return cli.SoFar(err, int64(written), "topics were written; --continue writes the others")
		}
		topic, ours := strings.CutPrefix(full, a.Prefix)
		if !ours {
			continue
		}
		name := filepath.Join(dir, fileOf(topic))
		if _, err := os.Stat(name); err == nil {
			kept++
			continue
		}
		if err := toFile(name, func(w io.Writer) error { return export(ctx, a, c, topic, w) }); err != nil {
			return cli.SoFar(fmt.Errorf("topic %q: %w", topic, err), int64(written), "topics were written; --continue writes the others")
		}
		written++
	}
	a.Summaryf("exported %d topics to %s; %d were there", written, output.Escape(dir), kept)
	return nil
}

// importAll imports the files of a directory that exportAll wrote, from a file on.
func importAll(ctx context.Context, a *cli.App, dir, from string, o wakebelltype.ImportOptions) error {
	if o.Topic != "" {
		return cli.Usagef("--topic: a directory has several topics; import a file of it")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read the export: %w", err)
	}
	var names []string
	found := from == ""
	for _, e := range entries { // sorted by name
		if e.IsDir() || !strings.HasSuffix(e.Name(), exportedSuffix) {
			continue
		}
		if found = found || e.Name() == filepath.Base(from); found {
			names = append(names, e.Name())
		}
	}
	switch {
	case !found:
		return cli.Usagef("--from-file: %s has no file %s", output.Escape(dir), output.Escape(from))
	case len(names) == 0:
		return fmt.Errorf("read the export: %s has no file *%s: %w", dir, exportedSuffix, fs.ErrNotExist)
	}
	return a.WithClient(func(c *wakebell.Client) error {
		for i, name := range names {
			if err := importFile(ctx, a, c, filepath.Join(dir, name), o); err != nil {
				if !o.DryRun {
					a.Notef("wakebell: %d of %d files are stored; to continue with this one, add --from-file %s\n", i, len(names), output.Escape(text.ShellWord(name)))
				}
				return fmt.Errorf("%s: %w", name, err)
			}
			o.FromLine = 0 // it is of the first file
		}
		return nil
	})
}

func importFile(ctx context.Context, a *cli.App, c *wakebell.Client, name string, o wakebelltype.ImportOptions) (err error) {
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("read the export: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return importTopic(ctx, a, c, f, o)
}
