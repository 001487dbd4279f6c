package docs_test

import (
	"fmt"
	"strings"
)

// A document is a markdown file in lines, with the fenced blocks that the tests use:
//
//	```console        commands after "$ " ("> " continues one), each with its output
//	```go main.go     a file of this name, to be written before what follows
type document struct {
	lines  []string
	blocks []block
}

// block is a file or, without a name, commands.
type block struct {
	file    string
	content string
	steps   []step
}

// step is a command and its output: lines[from:to] of the document.
type step struct {
	command  string
	output   string
	from, to int
}

func (s step) String() string { return fmt.Sprintf("line %d: $ %s", s.from, s.command) }

const fence = "```"

func parse(text string) (document, error) {
	d := document{lines: strings.Split(text, "\n")}
	for i := 0; i < len(d.lines); i++ {
		info, opens := strings.CutPrefix(d.lines[i], fence)
		if !opens {
			continue
		}
		end := i + 1
		for end < len(d.lines) && d.lines[end] != fence {
			end++
		}
		if end == len(d.lines) {
			return d, fmt.Errorf("line %d: block without an end", i+1)
		}
		switch words := strings.Fields(info); {
		case len(words) == 1 && words[0] == "console":
			steps, err := d.console(i+1, end)
			if err != nil {
				return d, err
			}
			d.blocks = append(d.blocks, block{steps: steps})
		case len(words) == 2:
			content := strings.Join(d.lines[i+1:end], "\n") + "\n"
			d.blocks = append(d.blocks, block{file: words[1], content: content})
		}
		i = end
	}
	return d, nil
}

// console parses the steps of lines[from:end].
func (d document) console(from, end int) (steps []step, err error) {
	for i := from; i < end; {
		command, ok := strings.CutPrefix(d.lines[i], "$ ")
		if !ok {
			return nil, fmt.Errorf("line %d: output without a command", i+1)
		}
		for i++; i < end && strings.HasPrefix(d.lines[i], "> "); i++ {
			command += "\n" + d.lines[i][len("> "):]
		}
		s := step{command: command, from: i}
		for i < end && !strings.HasPrefix(d.lines[i], "$ ") {
			i++
		}
		s.to = i
		s.output = strings.Join(d.lines[s.from:s.to], "\n")
		steps = append(steps, s)
	}
	return steps, nil
}

// with returns the document's text with new outputs of the steps, which are in the
// document's order.
func (d document) with(outputs map[int]string) string {
	var out []string
	next := 0
	for _, b := range d.blocks {
		for _, s := range b.steps {
			output, ok := outputs[s.from]
			if !ok {
				continue
			}
			out = append(out, d.lines[next:s.from]...)
			if output != "" {
				out = append(out, strings.Split(output, "\n")...)
			}
			next = s.to
		}
	}
	return strings.Join(append(out, d.lines[next:]...), "\n")
}
