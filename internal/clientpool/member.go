package clientpool

import (
	"fmt"
	"log"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/serf/serf"

	"github.com/nomadish/nomadish/internal/keyring"
	"github.com/nomadish/nomadish/structs"
)

// The names of the tags.
const (
	tagRole   = "role"
	tagRegion = "region"
	tagRPC    = "rpc"
)

// TagBytes bounds what a member states about itself: names and values together. Every member keeps it of every other.
const TagBytes = 128

// The settings of the key.
const (
	settingClient = "gossip_encrypt"
	settingServer = "client_gossip_encrypt"
)

// setting is the one of an agent's own role.
func setting(role string) string {
	if role == RoleServer {
		return settingServer
	}
	return settingClient
}

// sameKey describes what to check where keys differ: the agent's own setting first.
func sameKey(role string) string {
	own, other := "client { "+settingClient+" }", "server { "+settingServer+" }"
	if role == RoleServer {
		own, other = other, own
	}
	return own + " here must be the same as " + other + " elsewhere"
}

// maxID bounds a member's name.
const maxID = 64

func tagsOf(c *Config) map[string]string {
	tags := map[string]string{tagRole: c.Role, tagRegion: c.Region}
	if c.RPCAddr != "" {
		tags[tagRPC] = c.RPCAddr
	}
	return tags
}

// checkMember returns why a member has no place in the pool of a region.
func checkMember(id string, tags map[string]string, region string) error {
	if id == "" || len(id) > maxID || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("a member's ID %.80q: must be of 1 to %d visible ASCII characters", id, maxID)
	}
	size := 0
	for k, v := range tags { // order does not matter: they are summed
		size += len(k) + len(v) + 2
	}
	if size > TagBytes {
		return fmt.Errorf("member %s: its tags have %d bytes, at most %d are allowed", id, size, TagBytes)
	}
	if got := tags[tagRole]; got != RoleClient && got != RoleServer {
		return fmt.Errorf("member %s: its role is %q, neither %q nor %q", id, got, RoleClient, RoleServer)
	}
	if got := tags[tagRegion]; got != region {
		return fmt.Errorf("member %s is of region %q, this pool of %q", id, got, region)
	}
	return nil
}

func memberOf(m *serf.Member) Member {
	out := Member{
		ID: m.Name, Role: m.Tags[tagRole], Addr: net.JoinHostPort(m.Addr.String(), strconv.Itoa(int(m.Port))), Status: m.Status.String(),
	}
	if out.Role != RoleServer {
		return out
	}
	host, port, err := net.SplitHostPort(m.Tags[tagRPC])
	if n, bad := strconv.ParseUint(port, 10, 16); err == nil && bad == nil && n > 0 && host != "" {
		out.RPCAddr = m.Tags[tagRPC]
	}
	return out
}

// merging refuses members that do not belong to the pool.
type merging struct{ p *Pool }

// NotifyMerge implements serf.MergeDelegate.
func (m merging) NotifyMerge(members []*serf.Member) error {
	for _, one := range members {
		if err := checkMember(one.Name, one.Tags, m.p.config.Region); err != nil {
			if _, ok := m.p.logLimit.Allow("member", fmt.Sprintf("%.80s %s", one.Name, one.Addr), time.Now()); ok {
				m.p.logger.Warn("refused a member of the clients' gossip; more from there are not logged for an hour", "addr", one.Addr, "reason", err)
			}
			return fmt.Errorf("refused: %w", err)
		}
	}
	return nil
}

// rateLimitedLog writes what the libraries log, each warning once an hour from each address, and few a minute: with a wrong key,
// for example, every packet is one. What they log of members coming and going is for finding faults only.
type rateLimitedLog struct{ p *Pool }

func (s rateLimitedLog) logger() *log.Logger { return log.New(s, "", 0) }

// Write implements io.Writer.
func (s rateLimitedLog) Write(line []byte) (int, error) {
	_, warns := keyring.Level(string(line))
	if warns && s.p.logLimit.Full(time.Now()) {
		return len(line), nil
	}
	text := keyring.Line(string(line))
	if keyring.Needless(text) {
		return len(line), nil
	}
	if member, text := keyring.Namesakes(text); text != "" {
		if _, ok := s.p.logLimit.Allow("namesakes", keyring.KindOf(member), time.Now()); ok {
			s.p.logger.Error(text + ": its name is the node's ID, kept in client/client-id of the data_dir: no two agents may have copies of one; not logged again for an hour")
		}
		return len(line), nil
	}
	if host := keyring.UnknownHost(text); host != "" {
		if dropped, ok := s.p.logLimit.Allow("unknown host", host, time.Now()); ok {
			s.p.logger.Warn("refused gossip that no key of this agent decrypts: "+sameKey(s.p.config.Role)+"; more of it from there is not logged for an hour",
				append(keyring.More(dropped), "from", host)...)
		}
		return len(line), nil
	}
	_, rest, found := strings.Cut(text, "] ")
	if !found {
		rest = text
	}
	if !warns {
		s.p.logger.Debug(rest)
		return len(line), nil
	}
	if dropped, ok := s.p.logLimit.Allow("line", keyring.KindOf(rest), time.Now()); ok {
		s.p.logger.Warn(structs.CutText(rest, keyring.MaxLine)+" (more of this kind are not logged for an hour)", keyring.More(dropped)...)
	}
	return len(line), nil
}
