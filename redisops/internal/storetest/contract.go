package storetest

import (
	"context"
	"io/fs"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

// header is the header comment of a script.
type header struct {
	keys, args []string
	moreKeys   bool // more keys follow the named ones
	more       bool // more arguments follow the named ones
	returns    bool
}

func readHeader(t testing.TB, set *scripts.Set, name string) (header, string) {
	t.Helper()
	var h header
	text := set.Source(name)
	h.keys, h.moreKeys = cutMore(scripts.HeaderNames(text, "KEYS"))
	h.args, h.more = cutMore(scripts.HeaderNames(text, "ARGV"))
	body := ""
	for i, line := range strings.Split(text, "\n") {
		comment, ok := strings.CutPrefix(line, "--")
		if !ok {
			body = strings.Join(strings.Split(text, "\n")[i:], "\n")
			break
		}
		h.returns = h.returns || strings.HasPrefix(comment, " Returns: ")
	}
	return h, body
}

// cutMore removes the "..." at the end of a list.
func cutMore(words []string) (named []string, more bool) {
	if n := len(words); n > 0 && words[n-1] == "..." {
		return words[:n-1], true
	}
	return words, false
}

var (
	keyUse = regexp.MustCompile(`KEYS\[(\d+)\]`)
	argUse = regexp.MustCompile(`ARGV\[(\d+)\]`)
)

// CheckHeaders checks that the header of each script lists what the script uses.
func CheckHeaders(t *testing.T, set *scripts.Set) {
	t.Helper()
	t.Parallel()
	requireAllUsed(t, set)
	for name := range set.Loaded {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, body := readHeader(t, set, name)
			require.True(t, len(h.keys) > 0 || h.moreKeys)
			require.True(t, h.returns, "the header must say what is returned")
			require.Equal(t, len(h.keys), used(t, keyUse, body)+fromEnd(set, name), "KEYS")
			require.Equal(t, len(h.args), used(t, argUse, body), "ARGV")
			loops := strings.Contains(body, "ARGV[base") || strings.Contains(body, "ARGV, ") || strings.Contains(body, "ARGV[i]") || strings.Contains(body, "ARGV[at")
			require.Equal(t, h.more, loops, "further ARGV")
			require.Equal(t, h.moreKeys, regexp.MustCompile(`KEYS\[(\d+ [+*]|i\])`).MatchString(body), "further KEYS")
			require.NotRegexp(t, `tostring\(`, body, "it cuts instants to 14 digits")
		})
	}
}

// requireAllUsed requires that each file is a script or a part of one.
func requireAllUsed(t *testing.T, set *scripts.Set) {
	t.Helper()
	files, err := fs.Glob(set.Files, "lua/*.lua")
	require.NoError(t, err)
	for _, f := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(f, "lua/"), ".lua")
		require.True(t, set.Loaded[name] != nil || set.Parts[name] || name == "prelude", "%s is not used", f)
	}
}

// fromEnd returns how many of the last keys of a script are found by their distance from the
// last one, because some variants have others before them.
func fromEnd(set *scripts.Set, name string) int {
	switch {
	case name != "exchange" || !set.Parts["mark"]:
		return 0
	case set.Parts["keys"]: // those of timers too
		return 2
	default:
		return 1
	}
}

// used returns how many of KEYS or ARGV a script uses, and requires that it uses
// them without gaps.
func used(t *testing.T, use *regexp.Regexp, body string) int {
	t.Helper()
	seen := map[int]bool{}
	for _, m := range use.FindAllStringSubmatch(body, -1) {
		n, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		seen[n] = true
	}
	for i := 1; i <= len(seen); i++ {
		require.True(t, seen[i], "number %d is not used", i)
	}
	return len(seen)
}

// contract is a client hook that compares every script call of a test with the
// header of its script.
type contract struct {
	t       testing.TB
	names   map[string]string // names of scripts by hash
	headers map[string]header
	fenced  map[string]bool
	named   func(key, word string) bool
}

// Contract returns a client hook that compares every script call of a test with the
// header of its script. Named reports whether a key is the one that the header
// calls word.
func Contract(t testing.TB, set *scripts.Set, named func(key, word string) bool) redis.Hook {
	t.Helper()
	read, ok := contracts.Load(set)
	if !ok {
		c := contract{names: map[string]string{}, headers: map[string]header{}, fenced: set.Guards}
		for name, script := range set.Loaded {
			c.names[script.Hash()] = name
			c.headers[name], _ = readHeader(t, set, name)
		}
		read, _ = contracts.LoadOrStore(set, c)
	}
	c := read.(contract)
	c.t, c.named = t, named
	return c
}

// contracts has the contract of each *scripts.Set, without a test: each fixture has one, and
// reading the headers takes longer than many tests.
var contracts sync.Map

func (c contract) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (c contract) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (c contract) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" {
			c.check(cmd.Args())
		}
		return next(ctx, cmd)
	}
}

func (c contract) check(args []any) {
	sha, _ := args[1].(string)
	name := c.names[sha]
	if name == "" {
		return // a script of a test
	}
	h := c.headers[name]
	n, _ := args[2].(int)
	if c.fenced[name] { // the header does not have what lua/fence.lua takes from the end
		codes, _ := args[len(args)-1].(string)
		n -= len(codes)
		args = slices.Concat(args[:3+n], args[3+n+len(codes):len(args)-1-len(codes)])
	}
	if n != len(h.keys) && (!h.moreKeys || n < len(h.keys)) {
		c.t.Errorf("%s: %d keys passed, its header has %v", name, n, h.keys)
		return
	}
	for i, word := range h.keys {
		key, _ := args[3+i].(string)
		// The first key takes the place of one that is not used: without counting, and that
		// of a registry in another slot; of the settings for a user without the right to
		// them. Statistics need no payloads.
		unused := (word == "counts" || word == "throughput" || word == "topics" || word == "control" || word == "payloads" && name == "stats") && key == args[3]
		// A user without the right to the keys of timers gets keys of the same type.
		keyless := word == "order" && key == args[3] || (word == "keys" || word == "busy") && c.named(key, "leases")
		unused = unused || word == "cancelled" && key == args[3] // nor one to the marks of runs
		if word != "hash" && word != "key" && !unused && !keyless && !c.named(key, word) {
			c.t.Errorf("%s: key %d is %q, its header says %s", name, i+1, key, word)
		}
	}
	rest := len(args) - 3 - n
	if rest != len(h.args) && (!h.more || rest < len(h.args)) {
		c.t.Errorf("%s: %d arguments passed, its header has %v (more: %v)", name, rest, h.args, h.more)
	}
}

// OfTopic reports whether key is the topic's key, or the registry of topics, that
// headers call word.
func OfTopic(key, word string) bool {
	switch word {
	case "cancelled", "moving", "leaving":
		return strings.HasPrefix(key, "timers_exchange:") && strings.HasSuffix(key, ":"+word)
	}
	return strings.HasPrefix(key, "timers_"+word+":") || key == "timers_topics" && word == "topics"
}
