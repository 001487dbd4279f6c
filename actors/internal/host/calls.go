package host

import "sync"

// Calls runs calls of the same key a few at a time, and the others after them. Where thousands of
// pollers start at once, a goroutine for each of their calls would wait for a connection, and the
// runtime never gives the memory of goroutines back.
type Calls struct {
	mu   sync.Mutex
	keys map[string]*queued // those with calls
}

// queued is the calls of a key.
type queued struct {
	running int
	waiting []func()
}

// atOnce is how many calls of a key run at once.
const atOnce = 64

// Go runs a call in the background.
func (c *Calls) Go(key string, call func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.keys[key]
	if of == nil {
		if c.keys == nil {
			c.keys = map[string]*queued{}
		}
		of = &queued{}
		c.keys[key] = of
	}
	if of.running == atOnce {
		of.waiting = append(of.waiting, call)
		return
	}
	of.running++
	go func() {
		for ; call != nil; call = c.next(key, of) {
			call()
		}
	}()
}

// next ends a call and returns the one that is next; nil: none waits.
func (c *Calls) next(key string, of *queued) (call func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(of.waiting) > 0 {
		call = of.waiting[0]
		of.waiting[0] = nil
		of.waiting = of.waiting[1:]
		return call
	}
	if of.running--; of.running == 0 {
		delete(c.keys, key)
	}
	return nil
}
