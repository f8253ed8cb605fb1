package keyring

import (
	"io"
	"log"
	"net"
	"regexp"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/structs/wire"
)

// Log is a pool's log for Serf and memberlist, in which who gossips with another key, or with
// none, is said once an hour for each host, not once a packet.
func Log(logger hclog.Logger) *log.Logger {
	next := logger.StandardWriter(&hclog.StandardLoggerOptions{InferLevels: true})
	return log.New(&strangers{next: next, logger: logger, now: time.Now}, "", 0)
}

// strangers is where memberlist writes its log.
type strangers struct {
	next   io.Writer
	logger hclog.Logger
	told   wire.Once
	now    func() time.Time
}

// What memberlist says of packets and connections that cannot be decrypted, and from whom.
var (
	undecrypted = regexp.MustCompile(`(?i)decrypt packet failed|no installed keys could decrypt|remote state is not encrypted|remote state is encrypted|payload is too small to decrypt|cannot decrypt empty payload`)
	fromAddress = regexp.MustCompile(`from=(\S+)`)
)

// Write implements io.Writer.
func (s *strangers) Write(line []byte) (int, error) {
	if !undecrypted.Match(line) {
		return s.next.Write(line)
	}
	host := "an unknown address"
	if found := fromAddress.FindSubmatch(line); found != nil {
		host = string(found[1])
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
	}
	if s.told.First(host, s.now()) {
		s.logger.Warn("refused gossip that no key of this agent decrypts; more of it from there is not logged for an hour", "from", host)
	}
	return len(line), nil
}
