package redisops

// MaxName is the maximum length of an id or a topic, in bytes.
const MaxName = 512
