package keyring

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/serf/serf"

	"github.com/nomadish/nomadish/structs"
)

// Members are asked to change their keyrings by a query through the gossip itself, which is
// encrypted. Serf has such queries of its own, but a member that answers them has not
// kept the new keys safely; one that answers ours has.
const keyQuery = "nomadish-keyring"

const (
	keyRounds  = 3           // tries to reach all: an answer is one packet, which may be lost
	keyTimeout = time.Second // of one, at least
	// keyFilter is how many members a query names at most; one to more is to all.
	keyFilter = 6
)

// keyCommand is what a member is asked to do; keyAnswer what came of it. The payload of a
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
	Absent      []string          // failed members: nobody could tell them
}

// Pool is a gossip pool as its keys are changed.
type Pool struct {
	Serf   *serf.Serf
	Ring   *Ring // nil: the gossip goes in the clear
	Logger hclog.Logger
}

// Ask has every member that is alive do an operation on its keyring and waits for
// what it says. An error means that nobody was asked.
func (p *Pool) Ask(ctx context.Context, op string, key []byte) (*Report, error) {
	if p.Ring == nil {
		return nil, structs.Errorf(structs.CodeBadRequest, "the gossip is not encrypted").
			WithHint("set `encrypt` on all agents and start them again")
	}
	if op != structs.KeyList {
		if err := checkKey(key); err != nil {
			return nil, err
		}
	}
	payload, err := json.Marshal(keyCommand{Op: op, Key: key})
	if err != nil {
		return nil, err
	}
	report := &Report{Keys: map[string][]string{}, InUse: map[string][]string{}, Failed: map[string]string{}}
	for _, m := range p.Serf.Members() {
		switch m.Status.String() {
		case structs.MemberAlive:
			report.Members = append(report.Members, m.Name)
		case structs.MemberFailed:
			report.Absent = append(report.Absent, m.Name)
		}
	}
	slices.Sort(report.Members)
	slices.Sort(report.Absent)
	missing := slices.Clone(report.Members)
	for range keyRounds {
		if missing, err = p.askOnce(ctx, payload, missing, report); err != nil {
			return nil, err
		}
		if len(missing) == 0 {
			break
		}
	}
	for _, name := range missing {
		report.Failed[name] = "it did not answer; it may be busy, or of a version that does not know this"
	}
	for key := range report.Keys { // order does not matter: each is sorted for itself
		slices.Sort(report.Keys[key])
		slices.Sort(report.InUse[key])
	}
	return report, nil
}

// askOnce asks those that are missing, and gives those that still are.
func (p *Pool) askOnce(ctx context.Context, payload []byte, missing []string, report *Report) ([]string, error) {
	params := p.Serf.DefaultQueryParams()
	params.Timeout = max(params.Timeout, keyTimeout)
	if len(missing) <= keyFilter {
		params.FilterNodes = missing
	}
	query, err := p.Serf.Query(keyQuery, payload, params)
	if err != nil {
		return nil, err
	}
	defer query.Close()
	for len(missing) > 0 {
		select {
		case r, open := <-query.ResponseCh():
			if !open {
				return missing, nil
			}
			at := slices.Index(missing, r.From)
			if at < 0 {
				continue
			}
			missing = slices.Delete(slices.Clone(missing), at, at+1)
			report.add(r.From, r.Payload)
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-p.Serf.ShutdownCh():
			return nil, errors.New("the gossip has ended")
		}
	}
	return missing, nil
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
// left alone. A pool calls it with each query that comes.
func (p *Pool) Answer(q *serf.Query) {
	if q.Name != keyQuery {
		return
	}
	raw, err := json.Marshal(p.doKeys(q.Payload))
	if err == nil {
		err = q.Respond(raw)
	}
	if err != nil {
		p.Logger.Warn("answer a member that asked for the keyring", "member", q.SourceNode(), "error", err)
	}
}

// doKeys does what a query asks for. No log and no error holds a key.
func (p *Pool) doKeys(payload []byte) keyAnswer {
	var c keyCommand
	if json.Unmarshal(payload, &c) != nil {
		return keyAnswer{Error: "what is asked for cannot be read"}
	}
	if p.Ring == nil {
		return keyAnswer{Error: "its gossip is not encrypted"}
	}
	if c.Op == structs.KeyList {
		return keyAnswer{Keys: p.Ring.Keys()}
	}
	if err := p.Ring.Change(c.Op, c.Key); err != nil {
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
