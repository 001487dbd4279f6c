package redisops

// MaxName is the most bytes of an id or a topic.
const MaxName = 512
