package command

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/command/ui"
)

func operatorAPI() spec {
	return spec{
		synopsis: "Send a raw HTTP request and print the response",
		takes:    "path", usage: "<path>", example: "-X PUT -d @job.json /v1/jobs",
		details: "Exits 1 if the response is an error. A request with a body uses PUT unless -X sets another method.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			var headers listFlag
			method := fs.String("X", "", "the `method`; GET, or PUT with a body")
			body := fs.String("d", "", "the body: `text`, @file, or - for standard input")
			filter := fs.String("filter", "", "the filter `expression`")
			dry := fs.Bool("dryrun", false, "print the request without sending it")
			verbose := fs.Bool("verbose", false, "print the answer's status and headers to stderr")
			fs.Var(&headers, "H", "a `header`, as Name: value; repeatable")
			return func(ctx context.Context, e *env, args []string) int {
				header := http.Header{}
				for _, h := range headers {
					name, value, ok := strings.Cut(h, ":")
					if !ok {
						return e.usage("-H %q: write it as Name: value", h)
					}
					header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
				}
				path, err := e.apiPath(args[0], *filter)
				if err != nil {
					return e.usage("%v", err)
				}
				from, err := e.apiBody(*body)
				if err != nil {
					return e.fail(err)
				}
				if c, ok := from.(io.Closer); ok {
					defer c.Close() //nolint:errcheck // read only
				}
				verb := http.MethodGet
				if from != nil {
					verb = http.MethodPut
				}
				verb = cmp.Or(strings.ToUpper(*method), verb)
				if *dry {
					e.printf("%s %s%s\n", verb, e.client.Address(), path)
					return exitDone
				}
				resp, err := e.client.Send(ctx, verb, path, header, from)
				if err != nil {
					return e.fail(err)
				}
				return apiAnswer(resp, e, *verbose)
			}
		},
	}
}

// apiPath makes a path of what was given: a path, one without /v1, or a whole URL.
func (e *env) apiPath(given, filter string) (string, error) {
	u, err := url.Parse(given)
	if err != nil {
		return "", fmt.Errorf("path %q: %w", given, err)
	}
	path := u.EscapedPath()
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	if !strings.HasPrefix(path, "/v1/") && !strings.HasPrefix(path, "/debug/") && !strings.HasPrefix(path, "/.well-known/") {
		path = "/v1" + path
	}
	q := u.Query()
	add := func(key, value string) {
		if value != "" && !q.Has(key) {
			q.Set(key, value)
		}
	}
	env := api.Config{Region: e.region, Namespace: e.namespace}.FromEnv()
	add("region", env.Region)
	add("namespace", env.Namespace)
	add("filter", filter)
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	return path, nil
}

func (e *env) apiBody(given string) (io.Reader, error) {
	switch {
	case given == "":
		return nil, nil
	case given == "-":
		return e.in, nil
	case strings.HasPrefix(given, "@"):
		f, err := os.Open(given[1:])
		if err != nil {
			return nil, fmt.Errorf("body: %w", err)
		}
		return f, nil
	}
	return strings.NewReader(given), nil
}

func apiAnswer(resp *http.Response, e *env, verbose bool) int {
	defer resp.Body.Close() //nolint:errcheck // read only
	if verbose {
		e.eprintf("%s %s\n", resp.Proto, resp.Status)
		_ = resp.Header.Write(e.err)
		e.eprintf("\n")
	}
	if resp.StatusCode >= http.StatusBadRequest {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20)) // what came of it is all that can be reported
		return e.fail(fmt.Errorf("%s\n%s", ui.Indented(string(text)), resp.Status))
	}
	if _, err := io.Copy(ui.Raw(e.out), resp.Body); err != nil {
		return e.fail(fmt.Errorf("read the answer: %w", err))
	}
	return exitDone
}
