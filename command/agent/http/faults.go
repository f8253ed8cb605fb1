package httpapi

import (
	"net"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/wire"
)

// faults takes the lines that net/http logs: those of peers whose TLS is refused as
// warnings, once for each peer and reason, all others for who debugs.
type faults struct {
	logger hclog.Logger
	logged wire.LogLimiter
}

// changing is what differs between two lines on the same fault: times, lengths, what was offered.
var changing = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\[.*\]|[0-9]+`) })

// Write takes one line.
func (f *faults) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	// The package log has no types: its text is all that there is.
	if rest, ok := strings.CutPrefix(text, "http: TLS handshake error from "); ok {
		from, why, _ := strings.Cut(rest, ": ")
		peer, _, _ := net.SplitHostPort(from)
		if !strings.Contains(why, "EOF") && !strings.Contains(why, "timeout") && !strings.Contains(why, "reset by peer") &&
			f.logged.Allow(peer+" "+changing().ReplaceAllString(why, ""), time.Now()) {
			f.logger.Warn("refused a connection; more of this kind from there are not logged for an hour", "from", from, "error", why)
			return len(line), nil
		}
	}
	f.logger.Debug(text)
	return len(line), nil
}
