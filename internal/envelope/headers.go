package envelope

import (
	"errors"
	"fmt"
)

// CheckHeader reports why a user may not set a header: the key is empty or
// reserved for a field of the envelope, or a part has over MaxHeaderBytes.
func CheckHeader(key, value string) error {
	switch {
	case key == "":
		return errors.New("the key is empty")
	case len(key) > MaxHeaderBytes:
		return fmt.Errorf("the key has %d bytes, at most %d", len(key), MaxHeaderBytes)
	case len(value) > MaxHeaderBytes:
		return fmt.Errorf("the value has %d bytes, at most %d", len(value), MaxHeaderBytes)
	case key == HeaderCorrelationID || key == HeaderContentType || key == HeaderReplyTo:
		return errors.New("the key is reserved for a field of the envelope")
	}
	return nil
}

// scanLimit is the number of headers up to which a linear search is cheaper than
// a map. It is also the size of AppendTo's buffer on the stack.
const scanLimit = 16

// headerSet is a list in which every key occurs once, with the last value at the
// place of the first, as in a Python dict.
type headerSet struct {
	list []Header

	// index maps keys to indexes of list once list is longer than scanLimit, so
	// that 65,535 headers do not take quadratic time; nil before.
	index map[string]int
}

// withField adds a header unless its value is empty.
func (s headerSet) withField(key, value string) headerSet {
	if value == "" {
		return s
	}
	return s.with(key, value)
}

// with returns the set with a header added or replaced. As with append, the
// receiver must not be used afterwards. (A pointer receiver would move AppendTo's
// buffer to the heap.)
func (s headerSet) with(key, value string) headerSet {
	if i, ok := s.find(key); ok {
		s.list[i].Value = value
		return s
	}
	s.list = append(s.list, Header{Key: key, Value: value})
	switch {
	case s.index != nil:
		s.index[key] = len(s.list) - 1
	case len(s.list) > scanLimit:
		s.index = make(map[string]int, 2*len(s.list))
		for i, h := range s.list {
			s.index[h.Key] = i
		}
	}
	return s
}

func (s headerSet) find(key string) (int, bool) {
	if s.index != nil {
		i, ok := s.index[key]
		return i, ok
	}
	for i := range s.list {
		if s.list[i].Key == key {
			return i, true
		}
	}
	return 0, false
}

// collector builds an Envelope from the headers of a payload.
type collector struct {
	envelope Envelope
	user     headerSet
}

// add adds the next header. remaining is the number of headers left, this one
// included; it sizes the list of user headers when the first one is added.
func (c *collector) add(key, value string, remaining int) {
	switch key {
	case HeaderCorrelationID:
		c.envelope.CorrelationID = value
	case HeaderContentType:
		c.envelope.ContentType = value
	case HeaderReplyTo:
		c.envelope.ReplyTo = value
	default:
		if c.user.list == nil {
			c.user.list = make([]Header, 0, remaining)
		}
		c.user = c.user.with(key, value)
	}
}

func (c *collector) done(body []byte) Envelope {
	c.envelope.Headers = c.user.list
	c.envelope.Body = body
	return c.envelope
}
