package faultproxy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// maxBulk is the largest string that Redis accepts.
const maxBulk = 512 << 20

var errProtocol = errors.New("not the Redis protocol")

// readCommand reads a command, which is an array of bulk strings.
func readCommand(r *bufio.Reader) (raw []byte, words []string, err error) {
	line, err := readLine(r)
	if err != nil {
		return nil, nil, err
	}
	count, err := size(line)
	if err != nil || line[0] != '*' || count < 1 {
		return nil, nil, fmt.Errorf("%w: command %q", errProtocol, line)
	}
	raw = line
	for range count {
		head, err := readLine(r)
		if err != nil {
			return nil, nil, err
		}
		word, err := readBulk(r, head)
		if err == nil && len(word) == 0 {
			err = fmt.Errorf("%w: null in a command, %q", errProtocol, head)
		}
		if err != nil {
			return nil, nil, err
		}
		raw = append(append(raw, head...), word...)
		words = append(words, string(word[:len(word)-2]))
	}
	return raw, words, nil
}

// unit is what a fate applies to: a command, or a transaction with all of its
// commands.
type unit struct {
	raw     []byte
	words   []string // for a transaction the words of all its commands
	replies int
}

func readUnit(r *bufio.Reader) (unit, error) {
	raw, words, err := readCommand(r)
	if err != nil || !strings.EqualFold(words[0], "multi") {
		return unit{raw, words, 1}, err
	}
	u := unit{raw: raw, replies: 1}
	for {
		raw, words, err := readCommand(r)
		if err != nil {
			return u, err
		}
		u.raw = append(u.raw, raw...)
		u.replies++
		if last := strings.ToLower(words[0]); last == "exec" || last == "discard" {
			if len(u.words) == 0 {
				u.words = words
			}
			return u, nil
		}
		u.words = append(u.words, words...)
	}
}

// readReplies reads the replies to a unit.
func (u unit) readReplies(r *bufio.Reader) (raw []byte, err error) {
	for range u.replies {
		reply, err := readReply(r)
		if err != nil {
			return raw, err
		}
		raw = append(raw, reply...)
	}
	return raw, nil
}

// readReply reads a reply and the push messages and attributes before it.
func readReply(r *bufio.Reader) ([]byte, error) {
	var raw []byte
	for {
		next, err := r.Peek(1)
		if err != nil {
			return nil, err
		}
		aside := next[0] == '>' || next[0] == '|'
		if raw, err = appendValue(raw, r); err != nil || !aside {
			return raw, err
		}
	}
}

// appendValue reads one value and appends its bytes.
func appendValue(raw []byte, r *bufio.Reader) ([]byte, error) {
	line, err := readLine(r)
	if err != nil {
		return nil, err
	}
	raw = append(raw, line...)
	switch line[0] {
	case '+', '-', ':', '_', '#', ',', '(':
		return raw, nil
	case '$', '!', '=':
		body, err := readBulk(r, line)
		return append(raw, body...), err
	case '*', '~', '>', '%', '|':
		count, err := size(line)
		if err != nil {
			return nil, err
		}
		if line[0] == '%' || line[0] == '|' {
			count *= 2
		}
		for range max(count, 0) { // -1 is null
			if raw, err = appendValue(raw, r); err != nil {
				return nil, err
			}
		}
		return raw, nil
	default:
		return nil, fmt.Errorf("%w: value %q", errProtocol, line)
	}
}

// readBulk reads the content of a bulk string, including its line end.
func readBulk(r *bufio.Reader, head []byte) ([]byte, error) {
	n, err := size(head)
	if err != nil || n < 0 {
		return nil, err
	}
	if n > maxBulk {
		return nil, fmt.Errorf("%w: %d bytes", errProtocol, n)
	}
	var body bytes.Buffer // grows with the received bytes, not with the announced size
	if _, err := io.CopyN(&body, r, int64(n)+2); err != nil {
		return nil, err
	}
	return body.Bytes(), nil
}

// size parses the number of a head such as "$5\r\n".
func size(line []byte) (int, error) {
	n, err := strconv.Atoi(string(line[1 : len(line)-2]))
	if err != nil {
		return 0, fmt.Errorf("%w: size %q", errProtocol, line)
	}
	return n, nil
}

func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return nil, fmt.Errorf("%w: line %q", errProtocol, line)
	}
	return line, nil
}
