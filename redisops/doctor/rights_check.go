package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// subscribeLimit is how long the check waits for a subscription.
const subscribeLimit = 3 * time.Second

// wholeRights is the number of topics of which every right is checked. Rights are rules for
// commands and patterns of keys, so of the others a command that reads and one that writes
// each key show what differs.
const wholeRights = 10

var (
	commandsThatRead  = []string{"HGET", "HGETALL", "GET", "GETRANGE", "ZMSCORE", "XRANGE"}
	commandsThatWrite = []string{"HSET", "ZADD", "XADD", "SET", "DEL", "PUBLISH"}
)

// brief returns of each key a right to read and one to write.
func brief(all []right) (some []right) {
	type use struct {
		key    string
		writes bool
	}
	seen := map[use]bool{}
	for _, r := range all {
		u := use{r.key, slices.Contains(commandsThatWrite, r.command)}
		if !seen[u] && (u.writes || slices.Contains(commandsThatRead, r.command)) {
			seen[u] = true
			some = append(some, r)
		}
	}
	return some
}

// rights checks with ACL DRYRUN what the user may do, or else by trying the commands.
func (d *doctor) rights(ctx context.Context, all []*topicExam) {
	whole := min(len(all), max(0, wholeRights-d.examined))
	d.examined += len(all)
	missing, way, err := d.missing(ctx, all, func(i int, p *topicExam) []right {
		if i < whole {
			return p.needed()
		}
		return brief(p.needed())
	})
	var again []int // topics that lack a right, of which not all were asked
	if err == nil {
		for i := whole; i < len(all); i++ {
			if len(missing[i]) > 0 {
				again = append(again, i)
			}
		}
	}
	if len(again) > 0 {
		some := make([]*topicExam, len(again))
		for i, at := range again {
			some[i] = all[at]
		}
		var found [][]right
		if found, _, err = d.missing(ctx, some, func(_ int, p *topicExam) []right { return p.needed() }); err == nil {
			for i, at := range again {
				missing[at] = found[i]
			}
		}
	}
	for i, p := range all {
		if err != nil {
			p.unknown("rights", err)
			continue
		}
		p.rightsOf(missing[i], way, i < whole)
	}
}

func (p *topicExam) rightsOf(missing []right, way string, whole bool) {
	if len(missing) == 0 {
		found := "the user has all needed rights, "
		if !whole {
			found = "the user may read and write all keys, "
		}
		p.add("rights", wakebelltype.GradeGood, found+way, "")
		return
	}
	grade := wakebelltype.GradeGood
	var keys, losses []string
	commands := map[string][]string{} // by key
	for _, r := range missing {
		grade = worse(grade, r.grade)
		if commands[r.key] == nil {
			keys = append(keys, r.key)
		}
		commands[r.key] = append(commands[r.key], r.command)
		if !slices.Contains(losses, r.without) {
			losses = append(losses, r.without)
		}
	}
	for i, key := range keys {
		keys[i] = fmt.Sprintf("%s on %q", strings.Join(commands[key], " "), key)
	}
	p.add("rights", grade, "the user may not "+strings.Join(keys, ", ")+"; "+way,
		"give the user these rights, of which docs/keys.md has the list; without them "+strings.Join(losses, ", "))
}

// missing returns the rights that the user lacks for each topic, and how they were checked.
func (d *doctor) missing(ctx context.Context, all []*topicExam, of func(int, *topicExam) []right) (missing [][]right, way string, err error) {
	var rights []right
	var owner []int
	for i, p := range all {
		for _, r := range of(i, p) {
			rights, owner = append(rights, r), append(owner, i)
		}
	}
	way = "as ACL DRYRUN says"
	lacks, err := d.asked(ctx, rights)
	if err != nil {
		way = "as tried; HSETNX and SADD cannot be tried"
		lacks, err = d.tried(ctx, rights)
	}
	if err != nil {
		return nil, way, err
	}
	missing = make([][]right, len(all))
	for i, r := range rights {
		if lacks[i] {
			missing[owner[i]] = append(missing[owner[i]], r)
		}
	}
	return missing, way, nil
}

// asked checks rights with ACL DRYRUN, which came with Redis 7.0 and itself needs a right.
func (d *doctor) asked(ctx context.Context, needed []right) (lacks []bool, err error) {
	node := d.RDB // one server of a Cluster says the same as the others
	if cluster, ok := d.RDB.(*redis.ClusterClient); ok && len(needed) > 0 {
		master, err := cluster.MasterForKey(ctx, needed[0].key)
		if err != nil {
			return nil, scripts.Wrap(ctx, nil, err)
		}
		node = master
	}
	user, err := node.Do(ctx, "ACL", "WHOAMI").Text()
	if err != nil {
		return nil, scripts.Wrap(ctx, nil, err)
	}
	lacks = make([]bool, len(needed))
	for first := 0; first < len(needed); first += rightsPage {
		part := needed[first:min(len(needed), first+rightsPage)]
		pipe := node.Pipeline()
		replies := make([]*redis.Cmd, len(part))
		for i, r := range part {
			args := []any{"ACL", "DRYRUN", user, r.command, r.key}
			for _, arg := range r.rest {
				args = append(args, arg)
			}
			replies[i] = pipe.Do(ctx, args...)
		}
		_, _ = pipe.Exec(ctx) // each reply has its own error
		for i, reply := range replies {
			said, err := reply.Text()
			if err != nil {
				return nil, scripts.Wrap(ctx, nil, err)
			}
			lacks[first+i] = said != "OK"
		}
	}
	return lacks, nil
}

// rightsPage is how many commands a pipeline checks.
const rightsPage = 5000

// tried runs every command in a script, with arguments with which it changes nothing.
func (d *doctor) tried(ctx context.Context, needed []right) (lacks []bool, err error) {
	lacks = make([]bool, len(needed))
	var tries []try
	var at []int
	for i, r := range needed {
		switch {
		case r.command == "SUBSCRIBE":
			err := d.trySubscribe(ctx, r.key)
			if lacks[i] = scripts.IsDenied(err); err != nil && !lacks[i] {
				return nil, err
			}
		case !r.untried:
			tries, at = append(tries, try{r.key, r.command, r.rest}), append(at, i)
		}
	}
	said, errs := d.runCommands(ctx, tries)
	for i, err := range errs {
		if err == nil && scripts.IsDenied(said[i]) {
			err = said[i] // other errors of the command are ignored
		}
		if lacks[at[i]] = scripts.IsDenied(err); err != nil && !lacks[at[i]] {
			return nil, err
		}
	}
	return lacks, nil
}

// try is a command on a key.
type try struct {
	key, command string
	rest         []string
}

// runCommands runs commands in scripts, each alone; said are the errors of the commands, and
// errs those of the scripts.
func (d *doctor) runCommands(ctx context.Context, tries []try) (said, errs []error) {
	said, errs = make([]error, len(tries)), make([]error, 0, len(tries))
	for part := range slices.Chunk(tries, topicsAtOnce) {
		calls := make([]scripts.Call, len(part))
		for i, t := range part {
			args := []any{t.command}
			for _, arg := range t.rest {
				args = append(args, arg)
			}
			calls[i] = scripts.Call{Script: tryScript, Keys: []string{t.key}, Args: args}
		}
		replies, failed := d.RunMany(ctx, calls)
		for i := range part {
			text, err := scripts.AsText(replies[i], failed[i])
			if err == nil && text != "" {
				said[len(errs)] = scripts.WrapReply(calls[i].Keys, commandError(text))
			}
			errs = append(errs, err)
		}
	}
	return said, errs
}

// commandError is an error that Redis returned to a script.
type commandError string

func (e commandError) Error() string { return string(e) }

func (d *doctor) trySubscribe(ctx context.Context, channel string) error {
	sub := d.RDB.Subscribe(ctx)
	defer func() { _ = sub.Close() }() // the subscription was only a try
	err := sub.Subscribe(ctx, channel)
	if err == nil {
		_, err = sub.ReceiveTimeout(ctx, subscribeLimit)
	}
	if err != nil && !scripts.IsDenied(err) {
		err = fmt.Errorf("subscribe: %w", scripts.Wrap(ctx, nil, err))
	}
	return err
}
