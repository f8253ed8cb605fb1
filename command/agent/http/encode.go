package httpapi

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"strconv"

	"github.com/nomadish/nomadish/structs"
)

// answered is returned by a handler that has written its answer itself.
var answered = &struct{ done bool }{true}

// empty is an answer without content that official clients can still decode.
type empty struct{}

// respond encodes a handler's answer.
func (r *request) respond(body any) error {
	if body == any(answered) {
		return nil
	}
	if body == nil {
		r.w.WriteHeader(http.StatusOK)
		return nil
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	pretty, err := r.bool("pretty", false)
	if err != nil {
		return err
	}
	if pretty {
		enc.SetIndent("", "    ")
	}
	if err := enc.Encode(body); err != nil {
		return structs.Errorf(structs.CodeInternal, "encode the answer: %w", err)
	}
	r.w.Header().Set("Content-Type", "application/json")
	out := buf.Bytes()
	if !pretty {
		out = bytes.TrimSuffix(out, []byte("\n"))
	}
	_, _ = r.w.Write(out) // a caller that is gone needs no answer
	return nil
}

// setMeta puts what is known of a read into the headers.
func (r *request) setMeta(m structs.QueryMeta) {
	h := r.w.Header()
	setIndex(h, m.Index)
	r.setContact(&m)
	if m.NextToken != "" {
		h.Set("X-Nomad-NextToken", m.NextToken)
	}
}

// setContact sets the headers that state how the server that answered knew its leader, in whole milliseconds: 0 is of one that leads, or never heard one.
// A server of an earlier version may not have stated it: nil.
func (r *request) setContact(m *structs.QueryMeta) {
	if m == nil {
		return
	}
	h := r.w.Header()
	h.Set("X-Nomad-KnownLeader", strconv.FormatBool(m.KnownLeader))
	h.Set("X-Nomad-LastContact", strconv.FormatInt(int64(math.Ceil(max(0, m.LastContact.Seconds())*1000)), 10))
}

// setIndex puts the index of a write into the headers.
func setIndex(h http.Header, index uint64) {
	h.Set("X-Nomad-Index", strconv.FormatUint(index, 10))
}

// list makes an absent list an empty one: clients get [], never null.
func list[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

// queryReply is the reply of a call that reads.
type queryReply interface{ ReplyMeta() *structs.QueryMeta }

// read makes a call that reads, and puts its meta into the headers, also when
// the handler then finds nothing in the reply.
func (r *request) read(method string, args any, reply queryReply) error {
	if err := r.s.cfg.Backend.Call(r.Context(), method, args, reply); err != nil {
		return err
	}
	r.setMeta(*reply.ReplyMeta())
	return nil
}

// readByID reads what the ID in the path names: found returns it from the reply, or nil where there is no such thing, of which thing is the name.
func readByID[R, V any, P interface {
	*R
	queryReply
}](r *request, method, thing string, found func(P) *V) (any, error) {
	reply := P(new(R))
	if err := r.read(method, &structs.IDRequest{ID: r.id(), QueryOptions: r.opts}, reply); err != nil {
		return nil, err
	}
	if v := found(reply); v != nil {
		return v, nil
	}
	return nil, notFound(thing)
}

// readList reads a list, which items returns from the reply.
func readList[R, V any, P interface {
	*R
	queryReply
}](r *request, method string, args any, items func(P) []V) (any, error) {
	reply := P(new(R))
	if err := r.read(method, args, reply); err != nil {
		return nil, err
	}
	return list(items(reply)), nil
}

// queryClient makes a call that a client answers, who knows no index, and nothing of leaders.
func (r *request) queryClient(method string, args, reply any) error {
	return r.s.cfg.Backend.Call(r.Context(), method, args, reply)
}

// change makes a call that writes, and puts its index into the headers.
func (r *request) change(method string, args, reply any, index *uint64) error {
	if err := r.s.cfg.Backend.Call(r.Context(), method, args, reply); err != nil {
		return err
	}
	setIndex(r.w.Header(), *index)
	return nil
}

// changed makes a call that writes, whose answer is the reply of type R. Its index is put into the headers.
func changed[R any, P interface {
	*R
	ReplyIndex() uint64
}](r *request, method string, args any) (any, error) {
	reply := P(new(R))
	if err := r.s.cfg.Backend.Call(r.Context(), method, args, reply); err != nil {
		return nil, err
	}
	setIndex(r.w.Header(), reply.ReplyIndex())
	return reply, nil
}

// written makes a call that writes, whose answer is only the index in the headers.
func written(r *request, method string, args any) (any, error) {
	_, err := changed[structs.WriteReply](r, method, args)
	return nil, err
}

func notFound(what string) error { return structs.Errorf(structs.CodeNotFound, "%s not found", what) }

// nothing describes what a caller gets where the agent has no such thing.
var null = json.RawMessage("null")
