package incidents

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// dir has what is built.
var dir string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(runAll(m))
}

func runAll(m *testing.M) int {
	var err error
	if dir, err = os.MkdirTemp("", "incidents-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }() // only files of this test
	return m.Run()
}

// TestIncidents produces incidents and requires that their signs are seen: with -incidents all
// of them, each in its time; in the suite one, however long it takes.
func TestIncidents(t *testing.T) {
	path, err := built()
	require.NoError(t, err, path)
	for _, i := range table {
		names := strings.Split(*only, ",")
		if !*run {
			names, i.within = []string{inSuite}, startLimit
		}
		if (!*run || *only != "") && !slices.Contains(names, i.name) {
			continue
		}
		t.Run(i.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, path)
			i.strike(w)
			wanted := i.signs()
			seen, said := w.watch(wanted, i.within)
			for _, s := range wanted {
				if at, is := seen[s.name]; is {
					t.Logf("| %s | %s | %v |", i.name, s.name, at)
				} else {
					t.Errorf("%s is not seen within %v; the last that was seen:\n%s", s.name, i.within, shortened(said[s.name]))
				}
			}
		})
	}
}

// watch looks for signs until all are seen or the time is over. It returns after how long each
// was seen, and what was there last.
func (w *world) watch(wanted []sign, within time.Duration) (seen map[string]time.Duration, said map[string]string) {
	seen, said = map[string]time.Duration{}, map[string]string{}
	began, tick, over := time.Now(), time.NewTicker(200*time.Millisecond), time.After(within)
	defer tick.Stop()
	for {
		for _, s := range wanted {
			if _, before := seen[s.name]; before {
				continue
			}
			if said[s.name] = s.ask(w); s.want.MatchString(said[s.name]) {
				seen[s.name] = time.Since(began).Round(100 * time.Millisecond)
			}
		}
		if len(seen) == len(wanted) {
			return seen, said
		}
		select {
		case <-tick.C:
		case <-over:
			return seen, said
		}
	}
}

// sign is something that an operator sees.
type sign struct {
	name string
	want *regexp.Regexp
	ask  func(*world) string
}

func (i incident) signs() (all []sign) {
	for _, name := range i.alerts {
		all = append(all, sign{"alert " + name, regexp.MustCompile("firing"), func(w *world) string { return w.prom.Alerts()[name] }})
	}
	if i.page != "" {
		all = append(all, sign{"dashboard /" + i.path, regexp.MustCompile(i.page), func(w *world) string { return w.page(i.path) }})
	}
	if i.doctor != "" {
		all = append(all, sign{"doctor", regexp.MustCompile(i.doctor), func(w *world) string { return w.call("doctor", "--all") }})
	}
	if i.explain != nil {
		name := strings.Join(i.explain, " ")
		all = append(all, sign{name, regexp.MustCompile(i.says), func(w *world) string { return w.call(i.explain...) }})
	}
	return all
}

// shortened returns the end of a text, without the styles of a page.
func shortened(text string) string {
	_, after, found := strings.Cut(text, "<main")
	if found {
		text = after
	}
	return text[:min(len(text), 3000)]
}
