package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	ownersPage  = 1000
	ownersLimit = 100_000 // keys and names that are read
)

// owners looks for keys that stay and belong to no topic: none that is listed, and none that
// has timers, as those of Python peers have. It names no topic: who may examine one need not
// see others.
func (d *doctor) owners(ctx context.Context) {
	if err := d.ownersOf(ctx); err != nil {
		d.notChecked([]string{ownersCheck}, wakebelltype.Finding{}, scripts.Wrap(ctx, nil, err))
	}
}

func (d *doctor) ownersOf(ctx context.Context) error {
	owned, all, err := d.listed(ctx)
	if err != nil {
		return err
	}
	servers, err := d.Nodes(ctx)
	if err != nil {
		return err
	}
	read, kept := 0, map[string][]string{} // base names by topic
	for _, server := range servers {
		for cursor := uint64(0); ; {
			if read >= ownersLimit {
				all = false
				break
			}
			page, next, err := server.Scan(ctx, cursor, "", ownersPage).Result()
			if err != nil {
				return err
			}
			read += max(len(page), 1)
			for _, key := range page {
				d.sort(key, owned, kept)
			}
			if cursor = next; cursor == 0 {
				break
			}
		}
	}
	return d.unowned(ctx, owned, kept, all)
}

// listed returns the topics of the registry; all is false if there are more.
func (d *doctor) listed(ctx context.Context) (owned map[string]bool, all bool, err error) {
	owned = map[string]bool{}
	for cursor := uint64(0); ; {
		page, next, err := d.Topics(ctx, cursor)
		if err != nil {
			return nil, false, err
		}
		for _, name := range page {
			owned[d.Keys().Tagged(name)] = true
		}
		if cursor = next; cursor == 0 || len(owned) > ownersLimit {
			return owned, cursor == 0, nil
		}
	}
}

// sort adds a key to what its topic has, if it does not expire by itself.
func (d *doctor) sort(key string, owned map[string]bool, kept map[string][]string) {
	k := d.Keys()
	if name, ok := strings.CutPrefix(key, k.Timeline+":"); ok {
		owned[name] = true
		return
	}
	for _, base := range []string{k.Payloads, k.Leases, k.Dead, k.TimerKeys, k.KeyOrder, k.KeyStates, k.Control, k.Runs} {
		if name, ok := strings.CutPrefix(key, base+":"); ok {
			kept[name] = append(kept[name], base)
		}
	}
}

// unowned adds the finding. The scan may have missed a timeline, so those of a few are looked up.
func (d *doctor) unowned(ctx context.Context, owned map[string]bool, kept map[string][]string, all bool) error {
	maps.DeleteFunc(kept, func(name string, _ []string) bool { return owned[name] })
	names := slices.Sorted(maps.Keys(kept))
	names = names[:min(len(names), ownersPage)]
	pipe := d.RDB.Pipeline()
	replies := make([]*redis.IntCmd, len(names))
	for i, name := range names {
		replies[i] = pipe.Exists(ctx, d.Keys().Timeline+":"+name)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return err
	}
	topics, bases := 0, map[string]bool{}
	for i, name := range names {
		if replies[i].Val() > 0 {
			continue
		}
		topics++
		for _, base := range kept[name] {
			bases[base] = true
		}
	}
	among := ""
	if !all {
		among = fmt.Sprintf(", among the first %d keys", ownersLimit)
	}
	if topics == 0 {
		d.add(wakebelltype.Finding{Check: ownersCheck, Grade: wakebelltype.GradeGood, Found: "all keys belong to topics" + among})
		return nil
	}
	d.add(wakebelltype.Finding{
		Check: ownersCheck, Grade: wakebelltype.GradeWarn,
		Found: fmt.Sprintf("%d topics that are not listed and have no timers have keys: %s%s", topics, strings.Join(slices.Sorted(maps.Keys(bases)), ", "), among),
		Do:    "find them with redis-cli --scan --pattern 'BASE:*' and look at them with wakebell stats --topic; a topic is listed again when it is used, else remove its keys",
	})
	return nil
}
