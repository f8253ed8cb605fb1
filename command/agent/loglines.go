package agent

import (
	"io"
	"strings"

	"github.com/nomadish/nomadish/internal/printable"
)

// logLines is where loggers write: each Write, which is what one call of a logger printed, becomes one line, with what is not
// printable escaped. All of the agent's loggers end here, those that Raft, Serf and memberlist are given included.
type logLines struct {
	to   io.Writer
	json bool
}

// Write implements io.Writer.
func (l *logLines) Write(p []byte) (int, error) {
	var err error
	if l.json {
		_, err = l.to.Write(printable.EscapeJSON(p))
	} else {
		_, err = io.WriteString(l.to, oneLine(string(p)))
	}
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// oneLine makes one line of what a call of a logger printed. hclog writes a value of several lines below its key,
//
//	key=
//	| first
//	| second
//
// indented, and goes on with the next key in a line of its own; it becomes key="first\nsecond".
func oneLine(record string) string {
	lines := strings.Split(strings.TrimSuffix(record, "\n"), "\n")
	var b strings.Builder
	b.Grow(len(record) + 8)
	b.WriteString(printable.EscapeLine(lines[0]))
	quoted := false // within a value
	for i, line := range lines[1:] {
		text, value := strings.CutPrefix(line, "  | ")
		begins := value && !quoted && strings.HasSuffix(lines[i], "=") // the line before
		if begins || quoted && !value {
			b.WriteByte('"')
			quoted = begins
		} else {
			quoted = quoted && value
		}
		switch {
		case quoted:
			if !begins {
				b.WriteString(`\n`)
			}
			text = strings.ReplaceAll(text, `"`, `\"`)
		case strings.HasPrefix(line, "  ") && !value: // the next key, or nothing
			text = strings.TrimRight(" "+strings.TrimLeft(line, " "), " ")
		default: // a message of several lines
			text = `\n` + line
		}
		b.WriteString(printable.EscapeLine(text))
	}
	if quoted {
		b.WriteByte('"')
	}
	b.WriteByte('\n')
	return b.String()
}
