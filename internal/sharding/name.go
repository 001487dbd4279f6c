package sharding

import (
	"strconv"
	"strings"
)

// MaxShards is the largest number of shards of a topic.
const MaxShards = 256

// Separator stands between the name of a topic, the number of its shards, and a shard.
const Separator = "~"

// MaxSuffix is the length that the name of a shard has beyond that of its topic, in
// bytes.
const MaxSuffix = len(Separator+"256"+Separator) + len("255")

// Name returns the physical name of shard k of n of a topic. Of a topic with one shard
// it is the topic.
func Name(topic string, n, k int) string {
	if n <= 1 {
		return topic
	}
	return topic + suffix(n, k)
}

// Names returns the physical names of all n shards of a topic, in their order.
func Names(topic string, n int) []string {
	names := make([]string, max(n, 1))
	for k := range names {
		names[k] = Name(topic, n, k)
	}
	return names
}

func suffix(n, k int) string { return Separator + strconv.Itoa(n) + Separator + strconv.Itoa(k) }

// Split is the inverse of Name: it returns the topic, and the shard of a physical name. A
// name that is not one of a shard is that of a topic with one shard.
func Split(name string) (topic string, n, k int) {
	if rest, last, ok := cutLast(name); ok {
		if topic, count, ok := cutLast(rest); ok && topic != "" {
			n, k = number(count), number(last)
			if 2 <= n && n <= MaxShards && 0 <= k && k < n {
				return topic, n, k
			}
		}
	}
	return name, 1, 0
}

// Topic returns the topic of a physical name.
func Topic(name string) string {
	topic, _, _ := Split(name)
	return topic
}

// Reserved reports whether a name has the form of a physical name of a shard. A topic of
// users must not have it.
func Reserved(name string) bool {
	_, n, _ := Split(name)
	return n > 1
}

func cutLast(name string) (before, after string, ok bool) {
	i := strings.LastIndex(name, Separator)
	if i < 0 {
		return "", "", false
	}
	return name[:i], name[i+len(Separator):], true
}

// number reads a number as Name writes it; -1: it is not one.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || strconv.Itoa(n) != text {
		return -1
	}
	return n
}

// Place marks an entry of a shard, such as a dead letter, so that the entries of several
// shards differ. Of a topic with one shard it is the entry.
func Place(entry, name string) string {
	if _, n, k := Split(name); n > 1 {
		return entry + suffix(n, k)
	}
	return entry
}

// Placed is the inverse of Place: the entry, and the physical name of the shard that has
// it.
func Placed(place, topic string) (entry, name string) {
	entry, n, k := Split(place)
	return entry, Name(topic, n, k)
}
