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

// TestIncidents produces each incident and requires that its signs are seen in time.
func TestIncidents(t *testing.T) {
	if !*run {
		t.Skip("make incidents runs it: it takes minutes")
	}
	path, err := built()
	require.NoError(t, err, path)
	for _, i := range table {
		if *only != "" && !slices.Contains(strings.Split(*only, ","), i.name) {
			continue
		}
		t.Run(i.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, path)
			i.strike(w)
			began := time.Now()
			seen := map[string]time.Duration{}
			look := func(name string, sees bool) {
				if _, before := seen[name]; sees && !before {
					seen[name] = time.Since(began).Round(100 * time.Millisecond)
				}
			}
			said := map[string]string{}
			wanted := i.signs()
			for len(seen) < len(wanted) {
				for _, s := range wanted {
					if _, before := seen[s.name]; !before {
						said[s.name] = s.ask(w)
						look(s.name, s.want.MatchString(said[s.name]))
					}
				}
				if time.Since(began) > i.within {
					break
				}
				time.Sleep(200 * time.Millisecond) //nolint:forbidigo // it looks again at real processes, of another program
			}
			for _, s := range wanted {
				at, is := seen[s.name]
				if !is {
					t.Errorf("%s is not seen within %v; the last that was seen:\n%s", s.name, i.within, shortened(said[s.name]))
					continue
				}
				t.Logf("| %s | %s | %v |", i.name, s.name, at)
			}
		})
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
		all = append(all, sign{"alert " + name, regexp.MustCompile("firing"), func(w *world) string { return w.prom.alerts(w.T)[name] }})
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
