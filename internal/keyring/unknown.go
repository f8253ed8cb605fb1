package keyring

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/structs"
)

// Log returns a pool's log for Serf and memberlist, in which who gossips with another key, or with
// none, is logged once an hour for each host, not once a packet; and so are two members of one name, of which namesakes, if it is
// not nil, is called whenever they are heard of. Of other warnings and errors, too, which packets of nonsense cause, limiter lets few pass.
func Log(logger hclog.Logger, limiter *LogLimiter, namesakes func(name string)) *log.Logger {
	next := logger.StandardWriter(&hclog.StandardLoggerOptions{InferLevels: true})
	return log.New(&unknownHosts{next: next, logger: logger, limiter: limiter, now: time.Now, namesakes: namesakes}, "", 0)
}

// unknownHosts is where memberlist writes its log.
type unknownHosts struct {
	next    io.Writer
	logger  hclog.Logger
	limiter *LogLimiter
	now     func() time.Time
	// namesakes is called with a name that two members have; may be nil.
	namesakes func(name string)
}

// compiled returns a function that compiles a regular expression when it is first called: commands start without them.
func compiled(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// What memberlist logs about packets and connections that cannot be decrypted, and from whom.
var (
	undecrypted = compiled(`(?i)decrypt packet failed|no installed keys could decrypt|remote state is not encrypted|remote state is encrypted|payload is too small to decrypt|cannot decrypt empty payload`)
	fromAddress = compiled(`from=(\S+)`)
)

// What the libraries log in many lines, or about bytes, and what needs not be logged.
var (
	severalErrors = compiled(`\d+ errors? occurred:\s*\*\s*`)
	nextError     = compiled(`\s*\n\s*(\*\s*)?`)
	bytesOfMeta   = compiled(` meta:\(\[[^\]]*\] VS \[[^\]]*\]\), vsn:.*`)
	needless      = compiled(`serf: EventMember(Join|Leave|Failed|Update)\b|serf: Node name conflicts with|serf: Name conflict for|serf: Shutdown without a Leave`)
)

// namesakes is what memberlist logs about two members that have one name: the name, the address that it goes on with, the other.
var namesakes = compiled(`Conflicting address for (.+)\. Mine: (\S+) Theirs: (\S+)`)

// Namesakes returns the name that two members have by a line of the log, and a better text for it; empty: the line is about something else.
func Namesakes(line string) (member, text string) {
	found := namesakes().FindStringSubmatch(line)
	if found == nil {
		return "", ""
	}
	return found[1] + " " + found[3], fmt.Sprintf("two members of the gossip are called %s, the one at %s is not seen beside that at %s, unless it is the same, which has "+
		"come back with another address a moment ago", found[1], found[3], found[2])
}

// Line is what a library logs, in one line that can be read.
func Line(text string) string {
	text = nextError().ReplaceAllString(strings.TrimSpace(severalErrors().ReplaceAllString(text, "")), "; ")
	return bytesOfMeta().ReplaceAllString(text, ": it says something else of itself than the member that is known here under this name")
}

// Flat is an error of a library in one line; nil stays so.
func Flat(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(Line(err.Error()))
}

// OtherKey reports whether memberlist failed with an error as the other side has another key, or only one side has any.
func OtherKey(err error) bool { return err != nil && undecrypted().MatchString(err.Error()) }

// UnknownHost returns the host that sent what cannot be decrypted, by a line of the log; empty: the line is about something else.
func UnknownHost(line string) string {
	if !undecrypted().MatchString(line) {
		return ""
	}
	found := fromAddress().FindStringSubmatch(line)
	if found == nil {
		return "an unknown address"
	}
	if host, _, err := net.SplitHostPort(found[1]); err == nil {
		return host
	}
	return found[1]
}

// Needless reports whether a line repeats what is logged already, or is no news: what the pool itself logs about a member that
// changed, what memberlist logs about two of one name, that an agent which is to come back ends without a word to the others.
func Needless(line string) bool { return needless().MatchString(line) }

// Write implements io.Writer.
func (s *unknownHosts) Write(line []byte) (int, error) {
	if Needless(string(line)) {
		return len(line), nil
	}
	if member, text := Namesakes(string(line)); text != "" {
		if name, _, _ := strings.Cut(member, " "); s.namesakes != nil {
			s.namesakes(name)
		}
		if dropped, ok := s.limiter.Allow("namesakes", member, s.now()); ok {
			s.logger.Error(text+": give each server a name of its own (name = \"…\" in its configuration) and restart it; not logged again for an hour", More(dropped)...)
		}
		return len(line), nil
	}
	level, warns := Level(string(line))
	if warns && s.limiter.Full(s.now()) {
		return len(line), nil
	}
	host := UnknownHost(string(line))
	switch {
	case host != "":
		if dropped, ok := s.limiter.Allow("unknown host", host, s.now()); ok {
			s.logger.Warn("refused gossip that no key of this agent decrypts; more of it from there is not logged for an hour", append(More(dropped), "from", host)...)
		}
	case warns:
		text := Line(string(line))
		_, text, _ = strings.Cut(text, "] ")
		if dropped, ok := s.limiter.Allow("line", KindOf(text), s.now()); ok {
			s.logger.Log(level, structs.CutText(text, MaxLine)+" (more of this kind are not logged for an hour)", More(dropped)...)
		}
	default:
		if _, err := io.WriteString(s.next, Line(string(line))+"\n"); err != nil {
			return 0, err
		}
	}
	return len(line), nil
}

// MaxLine bounds what is logged of a library's line, in bytes.
const MaxLine = 1024

// Level returns the level of a library's line if that is a warning or an error.
func Level(line string) (level hclog.Level, warns bool) {
	switch level, _, _ := strings.Cut(line, "]"); level {
	case "[ERR", "[ERROR":
		return hclog.Error, true
	case "[WARN":
		return hclog.Warn, true
	}
	return hclog.Info, false
}

// More returns what a log line states about those that were dropped before it.
func More(dropped int) []any {
	if dropped == 0 {
		return nil
	}
	return []any{"not_logged", dropped}
}
