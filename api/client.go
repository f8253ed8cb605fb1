package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// DefaultAddress is where an agent on this machine listens.
const DefaultAddress = "http://127.0.0.1:4646"

// Config specifies the agent that a client calls, and its credentials.
type Config struct {
	Address   string // http://host:port, or https://; empty: DefaultAddress
	Region    string
	Namespace string
	Token     string
	// User is who the requests are sent for, where the servers trust that (trust_user_header); empty: nobody in particular.
	User string
	TLS  TLSConfig
	HTTP *http.Client // nil: one of its own, as TLS states

	badEnv error // what FromEnv could not read
	stale  bool  // see Client.Stale
}

// FromEnv fills what is empty in c from NOMADISH_* and, after them, NOMAD_*.
func (c Config) FromEnv() Config {
	fill := func(to *string, name string) {
		for _, prefix := range []string{"NOMADISH_", "NOMAD_"} {
			if v := os.Getenv(prefix + name); *to == "" && v != "" {
				*to = v
			}
		}
	}
	fill(&c.Address, "ADDR")
	fill(&c.Region, "REGION")
	fill(&c.Namespace, "NAMESPACE")
	fill(&c.Token, "TOKEN")
	c.User = cmp.Or(c.User, os.Getenv("NOMADISH_USER"))
	fill(&c.TLS.CACert, "CACERT")
	fill(&c.TLS.CAPath, "CAPATH")
	fill(&c.TLS.ClientCert, "CLIENT_CERT")
	fill(&c.TLS.ClientKey, "CLIENT_KEY")
	fill(&c.TLS.TLSServerName, "TLS_SERVER_NAME")
	var skip string
	fill(&skip, "SKIP_VERIFY")
	if skip != "" && !c.TLS.Insecure {
		if c.TLS.Insecure, c.badEnv = strconv.ParseBool(skip); c.badEnv != nil {
			c.badEnv = fmt.Errorf("NOMADISH_SKIP_VERIFY or NOMAD_SKIP_VERIFY %q: must be true or false", skip)
		}
	}
	return c
}

// Client calls an agent's HTTP API. It is safe for use by many goroutines.
type Client struct {
	config   Config
	base     *url.URL
	http     *http.Client
	answered func(Meta) // see Answered; nil: nobody is notified
}

// New makes a client; it sends nothing yet.
func New(c Config) (*Client, error) {
	if c.badEnv != nil {
		return nil, c.badEnv
	}
	if c.Address == "" {
		_, c.Address, _ = strings.Cut(DefaultAddress, "://")
	}
	if !strings.Contains(c.Address, "://") {
		if c.TLS == (TLSConfig{}) {
			c.Address = "http://" + c.Address
		} else {
			c.Address = "https://" + c.Address
		}
	}
	base, err := url.Parse(strings.TrimRight(c.Address, "/"))
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, fmt.Errorf("address %q: write it as http://host:port", c.Address)
	}
	h := c.HTTP
	if h == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		if t.TLSClientConfig, err = c.TLS.config(); err != nil {
			return nil, err
		}
		h = &http.Client{Transport: t}
	}
	return &Client{config: c, base: base, http: h}, nil
}

// In is a client that addresses another region through the same agent; "": the agent's own.
func (c *Client) In(region string) *Client {
	other := *c
	other.config.Region, other.answered = region, nil
	return &other
}

// Stale is a client whose reads are answered by the server that receives them, with what it knows, even if there is no leader.
func (c *Client) Stale() *Client {
	other := *c
	other.config.stale = true
	return &other
}

// Answered is a client that passes seen the Meta of each good answer that has one, before its body is read. seen
// may be called by several goroutines at once. Requests to other regions (see In) are not reported.
func (c *Client) Answered(seen func(Meta)) *Client {
	other := *c
	other.answered = seen
	return &other
}

// Region is the region of the client's requests; empty: the agent's own.
func (c *Client) Region() string { return c.config.Region }

// Address returns the address that the client calls.
func (c *Client) Address() string { return c.base.String() }

// Query goes with a read. The zero value, and nil, mean the current state.
type Query struct {
	Namespace string
	// Index makes it a blocking query: answered when something has moved past it, or after Wait.
	Index     uint64
	Wait      time.Duration
	Stale     bool
	Prefix    string
	Filter    string
	PerPage   int
	NextToken string
	Reverse   bool
	Params    map[string]string
}

// Meta comes with an answer.
type Meta struct {
	Index       uint64
	KnownLeader bool
	// LastContact is how long ago the server that answered had heard a leader; 0: it leads, or has never heard one.
	LastContact time.Duration
	NextToken   string
}

// Error is an answer other than success.
type Error struct {
	Status int // HTTP status code
	Msg    string
}

// Error returns the server's message.
func (e *Error) Error() string { return fmt.Sprintf("%s (HTTP %d)", e.Msg, e.Status) }

// IsNotFound reports whether err says that the thing does not exist.
func IsNotFound(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == http.StatusNotFound
}

// IsNoLeader reports whether err says that the cluster has no leader now.
func IsNoLeader(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == http.StatusInternalServerError && strings.Contains(e.Msg, "No cluster leader")
}

// Unreachable is returned when no agent answers at the address.
type Unreachable struct {
	Address string
	Err     error
}

// Error returns where nobody answered and what to do.
func (e *Unreachable) Error() string {
	return fmt.Sprintf("no agent answers at %s: %v\nStart one with `nomadish agent -dev`, or name another with -address or NOMADISH_ADDR.", e.Address, e.Err)
}

// Unwrap returns the cause.
func (e *Unreachable) Unwrap() error { return e.Err }

func (c *Client) values(q *Query) url.Values {
	v := url.Values{}
	set := func(k, s string) {
		if s != "" {
			v.Set(k, s)
		}
	}
	set("region", c.config.Region)
	set("namespace", c.config.Namespace)
	if c.config.stale {
		v.Set("stale", "")
	}
	if q == nil {
		return v
	}
	set("namespace", q.Namespace)
	if q.Index > 0 {
		v.Set("index", strconv.FormatUint(q.Index, 10))
	}
	if q.Wait > 0 {
		v.Set("wait", q.Wait.String())
	}
	if q.Stale {
		v.Set("stale", "")
	}
	set("prefix", q.Prefix)
	set("filter", q.Filter)
	if q.PerPage > 0 {
		v.Set("per_page", strconv.Itoa(q.PerPage))
	}
	set("next_token", q.NextToken)
	if q.Reverse {
		v.Set("reverse", "true")
	}
	for k, s := range q.Params {
		v.Set(k, s)
	}
	return v
}

// do sends one request; the caller closes the body of a good answer.
func (c *Client) do(ctx context.Context, method, path string, q *Query, body any) (*http.Response, error) {
	if body == nil {
		return c.send(ctx, method, path, q, nil, 0)
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	return c.send(ctx, method, path, q, bytes.NewReader(raw), int64(len(raw)))
}

// send is do with a body of size bytes as it is; below 0: it ends when it ends.
func (c *Client) send(ctx context.Context, method, path string, q *Query, body io.Reader, size int64) (*http.Response, error) {
	u := c.base.String() + path
	if v := c.values(q); len(v) > 0 {
		join := "?"
		if strings.Contains(path, "?") {
			join = "&"
		}
		u += join + v.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, u, body)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.ContentLength = size
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.config.Token != "" {
		req.Header.Set("X-Nomad-Token", c.config.Token)
	}
	if c.config.User != "" {
		req.Header.Set("X-Nomadish-User", c.config.User)
	}
	resp, err := c.round(ctx, req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		defer resp.Body.Close() //nolint:errcheck // read to its end below
		tail, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
		msg := strings.TrimSpace(string(tail))
		if resp.StatusCode == http.StatusBadRequest && strings.Contains(msg, "HTTP request to an HTTPS server") {
			msg += "\nThe agent speaks HTTPS: write its address as https://" + c.base.Host
		}
		return nil, &Error{Status: resp.StatusCode, Msg: msg}
	}
	if c.answered != nil && resp.Header.Get(knownLeader) != "" {
		c.answered(metaOf(resp.Header))
	}
	return resp, nil
}

// round sends a request and reports which errors mean that nobody answers.
func (c *Client) round(ctx context.Context, req *http.Request) (*http.Response, error) {
	resp, err := c.http.Do(req)
	if err == nil {
		return resp, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if inner := errors.Unwrap(err); inner != nil {
		err = inner // without the URL, which Unreachable names
	}
	if hint := c.tlsHint(err); hint != "" {
		return nil, &TLSError{Address: c.base.String(), Err: err, Hint: hint}
	}
	return nil, &Unreachable{Address: c.base.String(), Err: err}
}

// knownLeader is a header of answers that come out of a server's state; those of its agent, or of a client, have none.
const knownLeader = "X-Nomad-Knownleader"

func metaOf(h http.Header) Meta {
	index, _ := strconv.ParseUint(h.Get("X-Nomad-Index"), 10, 64)
	contact, _ := strconv.ParseInt(h.Get("X-Nomad-Lastcontact"), 10, 64)
	return Meta{
		Index: index, KnownLeader: h.Get(knownLeader) == "true", LastContact: time.Duration(contact) * time.Millisecond,
		NextToken: h.Get("X-Nomad-Nexttoken"),
	}
}

func (c *Client) call(ctx context.Context, method, path string, q *Query, body, out any) (Meta, error) {
	resp, err := c.do(ctx, method, path, q, body)
	if err != nil {
		return Meta{}, err
	}
	defer resp.Body.Close() //nolint:errcheck // read only
	meta := metaOf(resp.Header)
	if out == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		return meta, err
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil && !errors.Is(err, io.EOF) {
		return meta, fmt.Errorf("%s %s: read the answer: %w", method, path, err)
	}
	if v := reflect.ValueOf(out).Elem(); v.Kind() == reflect.Pointer && v.IsNil() {
		return meta, fmt.Errorf("%s %s: the answer is empty", method, path)
	}
	return meta, nil
}

// Get reads path (with its /v1) as JSON into out.
func (c *Client) Get(ctx context.Context, path string, q *Query, out any) (Meta, error) {
	return c.call(ctx, http.MethodGet, path, q, nil, out)
}

// Put sends body as JSON to path and reads the answer into out; both may be nil.
func (c *Client) Put(ctx context.Context, path string, q *Query, body, out any) (Meta, error) {
	return c.call(ctx, http.MethodPut, path, q, body, out)
}

// Delete deletes at path.
func (c *Client) Delete(ctx context.Context, path string, q *Query, out any) (Meta, error) {
	return c.call(ctx, http.MethodDelete, path, q, nil, out)
}

// Raw reads path as it is; the caller closes it.
func (c *Client) Raw(ctx context.Context, path string, q *Query) (io.ReadCloser, error) {
	resp, err := c.do(ctx, http.MethodGet, path, q, nil)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// As returns a client whose requests are sent for a user; "": as they are.
func (c *Client) As(user string) *Client {
	as := *c
	as.config.User = cmp.Or(user, c.config.User)
	return &as
}

// Send sends a body as it is, for callers who build requests themselves. path has
// its query; header and body may be nil. The caller closes the answer's body,
// whatever its status.
func (c *Client) Send(ctx context.Context, method, path string, header http.Header, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base.String()+path, body)
	if err != nil {
		return nil, err
	}
	if header != nil {
		req.Header = header.Clone()
	}
	if c.config.Token != "" {
		req.Header.Set("X-Nomad-Token", c.config.Token)
	}
	return c.round(ctx, req)
}

func seg(id string) string { return url.PathEscape(id) }

// maxBreakText bounds what is read of why a stream broke off, in bytes.
const maxBreakText = 4 << 10

// streamed reads the next of a stream of JSON objects out of dec, which reads body; io.EOF: that was all. An agent that fails
// amid a stream has no status left to report it with: it writes why behind the last object, and breaks the connection off.
func streamed(dec *json.Decoder, body io.Reader, v any) error {
	var raw json.RawMessage // a text may begin as a value does: with an ID's digits, or a name in quotes
	err := dec.Decode(&raw)
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF):
		return io.EOF
	case err == nil && raw[0] == '{':
		if err = json.Unmarshal(raw, v); err == nil {
			return nil
		}
	case err == nil || errors.As(err, &syntax):
		tail, _ := io.ReadAll(io.LimitReader(io.MultiReader(bytes.NewReader(raw), dec.Buffered(), body), maxBreakText)) // the break is what follows it
		if text := strings.TrimSpace(string(tail)); text != "" {
			return fmt.Errorf("the stream broke off: %s", text)
		}
	}
	return fmt.Errorf("the stream broke off: %w", err)
}
