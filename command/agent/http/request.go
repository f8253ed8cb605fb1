package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// request is a request with its parameters read.
type request struct {
	*http.Request
	w     *recorder
	s     *Server
	ids   []string // the names in the path
	query url.Values
	// opts are the parameters of a read.
	opts structs.QueryOptions
}

// id is the first name in the path.
func (r *request) id() string { return r.ids[0] }

// same refuses a body of which a field states another name than the path.
func (r *request) same(field, value string) error {
	if value != "" && value != r.id() {
		return badRequest("%s %q: does not match %q in the path", field, value, r.id())
	}
	return nil
}

// setName sets the name that a body states, or leaves out, to that in the path.
func (r *request) setName(name *string) error {
	if err := r.same("Name", *name); err != nil {
		return err
	}
	*name = r.id()
	return nil
}

// check reads the parameter cas: the index at which what is changed was changed last.
func (r *request) check() (cas bool, index uint64, err error) {
	if cas = r.query.Has("cas"); cas {
		index, err = uintParam(r.query, "cas")
	}
	return cas, index, err
}

func badRequest(format string, args ...any) error {
	return structs.Errorf(structs.CodeBadRequest, format, args...)
}

// maxQuery bounds the parameters of a request, in bytes.
const maxQuery = 32 << 10

func (s *Server) newRequest(w *recorder, r *http.Request, ids []string) (*request, error) {
	if len(r.URL.RawQuery) > maxQuery {
		return nil, badRequest("the query has %d bytes; at most %d are allowed", len(r.URL.RawQuery), maxQuery)
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, badRequest("query: %w", err)
	}
	req := &request{Request: r, w: w, s: s, ids: ids, query: query}
	opts, err := parseOptions(query, r.Header, s.cfg.DefaultWait, s.cfg.MaxWait)
	if err != nil {
		return nil, err
	}
	if opts.Region == "" {
		opts.Region = s.cfg.Agent.Self().Region
	}
	if opts.MinQueryIndex > 0 {
		opts.MaxQueryTime += s.cfg.Jitter(opts.MaxQueryTime)
	}
	req.opts = opts
	return req, nil
}

// parseOptions reads what every route understands. It leaves Region empty when
// none is stated.
func parseOptions(query url.Values, header http.Header, defaultWait, maxWait time.Duration) (structs.QueryOptions, error) {
	o := structs.QueryOptions{
		Region:    first(query.Get("region"), header.Get("X-Nomad-Region")),
		Namespace: first(query.Get("namespace"), header.Get("X-Nomad-Namespace"), structs.DefaultNamespace),
		AuthToken: token(header),
		Prefix:    query.Get("prefix"),
		Filter:    query.Get("filter"),
		NextToken: query.Get("next_token"),
	}
	var err error
	if o.AllowStale, err = boolParam(query, "stale", false); err != nil {
		return o, err
	}
	consistent, err := boolParam(query, "consistent", false)
	if err != nil {
		return o, err
	}
	if consistent && o.AllowStale {
		return o, badRequest("stale and consistent exclude each other; set one of them")
	}
	if o.Reverse, err = boolParam(query, "reverse", false); err != nil {
		return o, err
	}
	if o.MinQueryIndex, err = uintParam(query, "index"); err != nil {
		return o, err
	}
	o.MaxQueryTime = defaultWait
	if wait := query.Get("wait"); wait != "" {
		d, err := time.ParseDuration(wait)
		if err != nil || d < 0 {
			return o, badRequest("wait %q: must be a duration that is not negative, such as 30s or 5m", wait)
		}
		if d > 0 {
			o.MaxQueryTime = min(d, maxWait)
		}
	}
	if per := query.Get("per_page"); per != "" {
		n, err := strconv.ParseInt(per, 10, 32)
		if err != nil || n < 0 {
			return o, badRequest("per_page %q: must be a whole number from 0 to %d", per, 1<<31-1)
		}
		o.PerPage = int(n)
	}
	return o, nil
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// token is the caller's secret, from Nomad's header or as a bearer.
func token(h http.Header) string {
	if t := h.Get("X-Nomad-Token"); t != "" {
		return strings.TrimSpace(t)
	}
	scheme, value, ok := strings.Cut(strings.TrimSpace(h.Get("Authorization")), " ")
	if ok && strings.EqualFold(scheme, "bearer") {
		return strings.TrimSpace(value)
	}
	return ""
}

// boolParam reads a flag: present without a value is true.
func boolParam(query url.Values, name string, missing bool) (bool, error) {
	values, ok := query[name]
	if !ok {
		return missing, nil
	}
	if values[0] == "" {
		return true, nil
	}
	b, err := strconv.ParseBool(values[0])
	if err != nil {
		return false, badRequest("%s %q: must be true or false", name, values[0])
	}
	return b, nil
}

func uintParam(query url.Values, name string) (uint64, error) {
	v := query.Get(name)
	if v == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		return 0, badRequest("%s %q: must be a whole number from 0", name, v)
	}
	return n, nil
}

func (r *request) bool(name string, missing bool) (bool, error) {
	return boolParam(r.query, name, missing)
}

// userHeader states who sends a request. Servers believe it where trust_user_header is set, and refuse it elsewhere.
const userHeader = "X-Nomadish-User"

// write is what goes with a write.
func (r *request) write() structs.WriteRequest {
	return structs.WriteRequest{Region: r.opts.Region, Namespace: r.opts.Namespace, AuthToken: r.opts.AuthToken, User: strings.TrimSpace(r.Header.Get(userHeader))}
}

// fixed is for what is the same in all regions: the one requested must exist all the same.
func (r *request) fixed() error {
	r.setMeta(structs.QueryMeta{Index: 1, KnownLeader: true})
	if r.opts.Region == r.s.cfg.Agent.Self().Region {
		return nil
	}
	return r.s.cfg.Backend.Call(r.Context(), wire.MethodPing, &structs.EmptyRequest{QueryOptions: r.opts}, &structs.WriteReply{})
}

// fields reads which extra columns of a list are requested.
func (r *request) fields(defaults map[string]bool) (map[string]bool, error) {
	out := make(map[string]bool, len(defaults))
	for name, missing := range defaults {
		on, err := r.bool(name, missing)
		if err != nil {
			return nil, err
		}
		out[name] = on
	}
	return out, nil
}

// decode reads the body, which must be one JSON value, into v.
func (r *request) decode(v any) error {
	r.s.takes(r, v)
	body, err := r.readBody()
	if err != nil {
		return err
	}
	return decodeJSON(body, v)
}

// takes reports that the body of a request is decoded into v.
func (s *Server) takes(r *request, v any) {
	if s.decodes != nil {
		s.decodes(r, v)
	}
}

// readBody reads the body, which must not be empty.
func (r *request) readBody() ([]byte, error) {
	body, err := r.body()
	if err == nil && len(bytes.TrimSpace(body)) == 0 {
		err = badRequest("request body: empty; want a JSON object")
	}
	return body, err
}

// decodeOptional is decode for requests that may have no body.
func (r *request) decodeOptional(v any) error {
	r.s.takes(r, v)
	body, err := r.body()
	if err != nil || len(bytes.TrimSpace(body)) == 0 {
		return err
	}
	return decodeJSON(body, v)
}

func (r *request) body() ([]byte, error) {
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return nil, &statusError{http.StatusUnsupportedMediaType, fmt.Sprintf("Content-Encoding %q: send the body as it is", enc)}
	}
	limit := r.s.cfg.MaxBodyBytes
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	body, err := io.ReadAll(http.MaxBytesReader(r.w, r.Body, limit))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, tooLarge(limit)
	case err != nil:
		return nil, unreadable(err, int64(len(body)))
	}
	return body, nil
}

func tooLarge(limit int64) error {
	return structs.Errorf(structs.CodeTooLarge, "request body: larger than the %d bytes that are allowed", limit)
}

func decodeJSON(body []byte, v any) error {
	if err := checkValues(body); err != nil {
		return err
	}
	if fast, ok := v.(interface{ FromJSON(body []byte) bool }); ok && fast.FromJSON(body) {
		return nil
	}
	if json.Unmarshal(body, v) == nil {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(body)) // reports more exactly what is wrong with it
	if err := dec.Decode(v); err != nil {
		return jsonError(err, len(body))
	}
	at := dec.InputOffset()
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return badRequest("request body: something follows the JSON value that ends at byte %d; send one value only", at)
	}
	return nil
}

func jsonError(err error, size int) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind):
		field := kind.Field
		if field == "" {
			field = "the value"
		}
		return badRequest("request body: %s: a JSON %s does not fit here (byte %d)", field, kind.Value, kind.Offset)
	case errors.As(err, &syntax):
		return badRequest("request body: bad JSON at byte %d: %s", syntax.Offset, syntax.Error())
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return badRequest("request body: bad JSON: it ends too early, after %d bytes", size)
	}
	return badRequest("request body: %w", err)
}
