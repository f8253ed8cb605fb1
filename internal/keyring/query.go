package keyring

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/memberlist"
	"github.com/hashicorp/serf/serf"

	"github.com/nomadish/nomadish/structs"
)

// Members change their keyrings on a query through the gossip itself, which is
// encrypted. Serf has such queries of its own, but a member that answers them has not
// kept the new keys safely; one that answers ours has.
const keyQuery = "nomadish-keyring"

const (
	keyRounds  = 3           // tries to reach all: an answer is one packet, which may be lost
	keyTimeout = time.Second // of one, at least
	// keyFilter is how many members a query names at most; one to more is to all.
	keyFilter = 6
	// keyPatience is how many of the times between two gossips a member has to answer before it is pinged: one
	// that died a moment ago passes for alive. keyPings is how often it is pinged, keyLimit bounds all.
	keyPatience = 5
	keyPings    = 2
	keyLimit    = 10 * time.Second
)

// keyCommand is what a member is to do; keyAnswer what came of it. The payload of a
// query may have about 1,000 bytes.
type (
	keyCommand struct {
		Op  string
		Key []byte `json:",omitempty"`
	}
	keyAnswer struct {
		Error string   `json:",omitempty"`
		Keys  [][]byte `json:",omitempty"` // of structs.KeyList: the one in use first
	}
)

// Report is what the members of a pool answered.
type Report struct {
	// Keys are the members that have a key, InUse those that encrypt with it, by the key in
	// base64; sorted.
	Keys, InUse map[string][]string
	Members     []string          // all that are alive
	Failed      map[string]string // those that have not done it, and why
	Absent      []string          // members that have failed, or do not answer at all: they could not be reached
}

// Pool is a gossip pool as its keys are changed.
type Pool struct {
	Serf     *serf.Serf
	Ring     *Ring         // nil: the gossip goes in the clear
	Interval time.Duration // between two gossips
	// Refuse returns why a key is not to be installed; nil: all may be.
	Refuse func(key []byte) error
	Logger hclog.Logger
}

// Query has every member that is alive do an operation on its keyring and waits for
// their answers. An error means that no member was queried.
func (p *Pool) Query(ctx context.Context, op string, key []byte) (*Report, error) {
	if p.Ring == nil {
		return nil, structs.Errorf(structs.CodeBadRequest, "the gossip is not encrypted").
			WithHint("set `encrypt` on all agents and start them again")
	}
	if op != structs.KeyList {
		if err := Check(key); err != nil {
			return nil, err
		}
	}
	payload, err := json.Marshal(keyCommand{Op: op, Key: key})
	if err != nil {
		return nil, err
	}
	report := &Report{Keys: map[string][]string{}, InUse: map[string][]string{}, Failed: map[string]string{}}
	query, err := p.Gather(ctx, keyQuery, payload, report.add)
	if err != nil {
		return nil, err
	}
	report.Members, report.Absent = query.Members, query.Absent
	for _, name := range query.Silent {
		report.Failed[name] = Silent
	}
	for key := range report.Keys { // order does not matter: each is sorted for itself
		slices.Sort(report.Keys[key])
		slices.Sort(report.InUse[key])
	}
	return report, nil
}

// Silent is why one has not done it that lives and does not answer.
const Silent = "it did not answer; it may be busy, or of a version that does not know this"

// Answered are the members that a query went to, each sorted.
type Answered struct {
	Members []string // all that are alive
	Silent  []string // of those: they have not answered
	Absent  []string // failed, or dead since a moment ago: they were not reached
}

// Gather queries all members that are alive and passes on their answers, each member's once, as they come. It takes keyLimit at most.
func (p *Pool) Gather(ctx context.Context, name string, payload []byte, answered func(member string, payload []byte)) (*Answered, error) {
	out := &Answered{}
	for _, m := range p.Serf.Members() {
		switch m.Status.String() {
		case structs.MemberAlive:
			out.Members = append(out.Members, m.Name)
		case structs.MemberFailed:
			out.Absent = append(out.Absent, m.Name)
		}
	}
	slices.Sort(out.Members)
	out.Silent = slices.Clone(out.Members)
	ctx, cancel := context.WithTimeout(ctx, keyLimit)
	defer cancel()
	for round := range keyRounds {
		err := p.query(ctx, name, payload, round == 0, out, answered)
		if err != nil && ctx.Err() == nil {
			return nil, err
		}
		if len(out.Silent) == 0 || ctx.Err() != nil {
			break
		}
	}
	slices.Sort(out.Absent)
	return out, nil
}

// query queries those that have been silent so far.
func (p *Pool) query(ctx context.Context, name string, payload []byte, first bool, out *Answered, answered func(string, []byte)) error {
	params := p.Serf.DefaultQueryParams()
	params.Timeout = max(params.Timeout, keyTimeout)
	if len(out.Silent) <= keyFilter {
		params.FilterNodes = out.Silent
	}
	query, err := p.Serf.Query(name, payload, params)
	if err != nil {
		return err
	}
	defer query.Close()
	var unknown <-chan time.Time
	if first {
		unknown = time.After(min(max(keyTimeout/2, keyPatience*p.Interval), params.Timeout/2))
	}
	dead := make(chan string, len(out.Silent))
	is := func(name string) bool {
		at := slices.Index(out.Silent, name)
		if at >= 0 {
			out.Silent = slices.Delete(slices.Clone(out.Silent), at, at+1)
		}
		return at >= 0
	}
	for len(out.Silent) > 0 {
		select {
		case r, open := <-query.ResponseCh():
			if !open {
				return nil
			}
			if is(r.From) {
				answered(r.From, r.Payload)
			}
		case <-unknown:
			there := p.Serf.Memberlist().Members()
			for _, name := range out.Silent {
				at := slices.IndexFunc(there, func(m *memberlist.Node) bool { return m.Name == name })
				if at < 0 { // it is known to have failed by now
					dead <- name
					continue
				}
				go p.ping(there[at], dead) // ends within the time that it grants the other side
			}
		case name := <-dead:
			if is(name) {
				out.Members = slices.DeleteFunc(out.Members, func(one string) bool { return one == name })
				out.Absent = append(out.Absent, name)
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-p.Serf.ShutdownCh():
			return errors.New("the gossip has ended")
		}
	}
	return nil
}

// ping names a member that does not answer.
func (p *Pool) ping(m *memberlist.Node, dead chan<- string) {
	for range keyPings {
		addr := &net.UDPAddr{IP: m.Addr, Port: int(m.Port)}
		if _, err := p.Serf.Memberlist().Ping(m.Name, addr); err == nil {
			return
		}
	}
	dead <- m.Name
}

func (r *Report) add(member string, payload []byte) {
	var a keyAnswer
	if json.Unmarshal(payload, &a) != nil {
		a.Error = "its answer cannot be read"
	}
	if a.Error != "" {
		r.Failed[member] = a.Error
		return
	}
	for i, key := range a.Keys {
		text := base64.StdEncoding.EncodeToString(key)
		r.Keys[text] = append(r.Keys[text], member)
		if i == 0 {
			r.InUse[text] = append(r.InUse[text], member)
		}
	}
}

// Answer answers a query of another member, or of this one; others than those for keys are
// left alone, and it returns false. A pool calls it with each query that comes.
func (p *Pool) Answer(q *serf.Query) bool {
	if q.Name != keyQuery {
		return false
	}
	raw, err := json.Marshal(p.doKeys(q.Payload))
	if err == nil {
		err = q.Respond(raw)
	}
	if err != nil {
		p.Logger.Warn("answer a member's query for the keyring", "member", q.SourceNode(), "error", err)
	}
	return true
}

// doKeys does what a query requests. No log and no error contains a key.
func (p *Pool) doKeys(payload []byte) keyAnswer {
	var c keyCommand
	if json.Unmarshal(payload, &c) != nil {
		return keyAnswer{Error: "the query cannot be read"}
	}
	if p.Ring == nil {
		return keyAnswer{Error: "its gossip is not encrypted"}
	}
	if c.Op == structs.KeyList {
		return keyAnswer{Keys: p.Ring.Keys()}
	}
	err := error(nil)
	if c.Op == structs.KeyInstall && p.Refuse != nil {
		err = p.Refuse(c.Key)
	}
	if err == nil {
		err = p.Ring.Change(c.Op, c.Key)
	}
	if err != nil {
		p.Logger.Error("the keys of the gossip were not changed", "operation", oneWord(c.Op), "error", err)
		return keyAnswer{Error: cut(err.Error())}
	}
	p.Logger.Info("the keys of the gossip were changed", "operation", c.Op, "keys", len(p.Ring.Keys()))
	return keyAnswer{}
}

// cut bounds a text that must fit in a packet.
func cut(s string) string {
	const limit = 300
	if len(s) > limit {
		return strings.ToValidUTF8(s[:limit], "") + "…"
	}
	return s
}

// oneWord bounds a word of somebody else's for the log.
func oneWord(s string) string {
	const limit = 20
	return strings.ToValidUTF8(s[:min(len(s), limit)], "")
}
