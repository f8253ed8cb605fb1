package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/internal/printable"
	"github.com/nomadish/nomadish/structs"
)

// capture is one run of `operator debug`. Its files are gathered in a directory, from many goroutines.
type capture struct {
	e    *env
	o    debugOptions
	dir  string // where the files are
	self *api.AgentSelf

	agents []debugAgent

	mu     sync.Mutex
	errors []string
	wrote  int
}

// debugAnswer bounds the wait for one answer.
const debugAnswer = 30 * time.Second

// capture gathers everything and writes the archive.
func (e *env) capture(ctx context.Context, o debugOptions) int {
	name := "nomadish-debug-" + e.now().UTC().Format("2006-01-02-150405Z")
	place, err := newDebugPlace(o.output, name)
	if err != nil {
		return e.fail(err)
	}
	defer place.discard()
	c := &capture{e: e, o: o, dir: place.dir, self: &api.AgentSelf{}}
	if err := c.begin(ctx); err != nil { // nothing can be requested at all
		return e.fail(err)
	}
	c.show()
	p := e.waiting("gathering for " + o.duration.String())
	defer p.stop()
	c.gather(ctx, p)
	c.summary(name)
	p.now("writing what was gathered")
	made, size, err := place.finish()
	p.stop()
	if err != nil {
		return e.fail(err)
	}
	e.printf("\nSaved %s (%d files, %s)\n", made, c.wrote, ui.Bytes(uint64(max(0, size)))) // not negative
	if len(c.errors) > 0 {
		e.printf("%d things could not be gathered; errors.txt in it lists them\n", len(c.errors))
	}
	if ctx.Err() != nil {
		return exitInterrupted
	}
	return exitDone
}

// begin requests the agent's description, and finds out of whom something is gathered.
func (c *capture) begin(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, debugAnswer)
	defer cancel()
	self, err := c.e.client.Agent().Self(limited)
	if err != nil {
		return err
	}
	if self != nil {
		c.self = self
	}
	c.agents = append(c.debugServers(limited), c.debugNodes(limited)...)
	return nil
}

// show prints what is about to be done.
func (c *capture) show() {
	servers, nodes := 0, 0
	for _, a := range c.agents {
		if a.serverID != "" {
			servers++
		} else {
			nodes++
		}
	}
	ui.Pairs(c.e.out, []ui.Pair{
		{Key: "Address", Value: c.e.client.Address()},
		{Key: "Servers", Value: fmt.Sprint(servers)},
		{Key: "Nodes", Value: fmt.Sprint(nodes)},
		{Key: "Duration", Value: c.o.duration.String()},
		{Key: "Interval", Value: c.o.interval.String()},
		{Key: "Profiles", Value: fmt.Sprintf("of %s, every %s", c.o.pprofDuration, c.o.pprofInterval)},
	})
	c.progress("\n")
}

// gather runs until the duration is over, or ctx ends.
func (c *capture) gather(ctx context.Context, p *progress) {
	timed, cancel := context.WithTimeout(ctx, c.o.duration)
	defer cancel()
	var work sync.WaitGroup
	for _, a := range c.agents {
		work.Go(func() { c.logs(timed, a) })
		work.Go(func() { c.profiles(ctx, timed, a) })
	}
	if topics := listed(c.o.topics); len(topics) > 0 && topics[0] != "none" {
		work.Go(func() { c.events(timed, topics) })
	}
	c.cluster(ctx) // even if the duration is shorter than the answers take
	tick := time.NewTicker(c.o.interval)
	defer tick.Stop()
	for n := 0; ; n++ {
		c.progress("Snapshot %04d\n", n)
		c.snapshot(ctx, n)
		select {
		case <-tick.C:
		case <-timed.Done():
		}
		if timed.Err() != nil {
			break
		}
	}
	p.now("waiting for the profiles that were begun")
	work.Wait()
}

// cluster saves what does not change all the time.
func (c *capture) cluster(ctx context.Context) {
	c.saveValue("cluster/agent-self.json", c.self)
	for name, path := range map[string]string{
		"members": "/v1/agent/members", "regions": "/v1/regions", "namespaces": "/v1/namespaces", "leader": "/v1/status/leader",
		"raft-configuration": "/v1/operator/raft/configuration", "scheduler-configuration": "/v1/operator/scheduler/configuration",
		"autopilot-configuration": "/v1/operator/autopilot/configuration", "agent-schedulers": "/v1/agent/schedulers",
	} {
		c.save(ctx, "cluster/"+name+".json", path, nil)
	}
	for _, a := range c.agents {
		limited, cancel := context.WithTimeout(ctx, debugAnswer)
		host, err := c.e.client.Agent().Host(limited, a.nodeID, a.serverID)
		cancel()
		if err != nil {
			c.failed(a.dir+"/agent-host.json", err)
			continue
		}
		c.saveValue(a.dir+"/agent-host.json", host)
	}
}

// snapshot saves what is there now.
func (c *capture) snapshot(ctx context.Context, n int) {
	dir := fmt.Sprintf("nomad/%04d/", n)
	q := c.e.query()
	if q.Namespace == "" {
		q.Namespace = "*"
	}
	for _, name := range []string{"jobs", "nodes", "allocations", "evaluations", "deployments", "queue", "metrics"} {
		c.save(ctx, dir+name+".json", "/v1/"+name, q)
	}
	limited, cancel := context.WithTimeout(ctx, debugAnswer)
	defer cancel()
	if health, err := c.e.client.Operator().AutopilotHealth(limited); err != nil {
		c.failed(dir+"autopilot-health.json", err)
	} else {
		c.saveValue(dir+"autopilot-health.json", health)
	}
}

// logs saves the log of an agent until ctx ends.
func (c *capture) logs(ctx context.Context, a debugAgent) {
	name := a.dir + "/monitor.log"
	file, err := c.create(name)
	if err != nil {
		c.failed(name, err)
		return
	}
	err = c.e.client.Agent().Monitor(ctx, api.MonitorOptions{
		NodeID: a.nodeID, ServerID: a.serverID, LogLevel: c.o.logLevel, IncludeLocation: c.o.logLocation,
	}, file)
	if ctx.Err() != nil {
		err = nil // this is how it ends
	} else if err == nil {
		err = errors.New("the agent ended the stream")
	}
	c.close(name, file, err)
}

// profiles saves runtime profiles of an agent every interval, until timed ends or the agent returns none. Those that were begun by
// then are all taken, unless ctx ends.
func (c *capture) profiles(ctx, timed context.Context, a debugAgent) {
	tick := time.NewTicker(c.o.pprofInterval)
	defer tick.Stop()
	for n := 0; ; n++ {
		if !c.profilesOnce(ctx, a, n) {
			return
		}
		select {
		case <-tick.C:
		case <-timed.Done():
			return
		}
	}
}

// profilesOnce saves one profile of each kind; false: the agent returns none.
func (c *capture) profilesOnce(ctx context.Context, a debugAgent, n int) bool {
	seconds := int(c.o.pprofDuration.Seconds())
	for _, p := range []struct {
		profile, end   string
		seconds, debug int
	}{
		{"goroutine", "prof", 0, 0}, {"goroutine", "txt", 0, 2}, {"heap", "prof", 0, 0}, {"allocs", "prof", 0, 0}, {"threadcreate", "prof", 0, 0},
		{"profile", "prof", seconds, 0}, {"trace", "prof", seconds, 0},
	} {
		name := fmt.Sprintf("%s/%s_%04d.%s", a.dir, p.profile, n, p.end)
		err := c.profile(ctx, a, name, p.profile, p.seconds, p.debug)
		var refused *api.Error
		switch {
		case ctx.Err() != nil:
			return false
		case errors.As(err, &refused) && refused.Status == http.StatusForbidden:
			c.failed(a.dir+": profiles", err)
			return false
		case err != nil:
			c.failed(name, err)
		}
	}
	return true
}

// profileTries is how often a profile is requested while another one is being taken: an agent that is a server and a client is
// requested for both.
const profileTries = 4

// profile saves one profile.
func (c *capture) profile(ctx context.Context, a debugAgent, name, profile string, seconds, debug int) error {
	ctx, cancel := context.WithTimeout(ctx, debugAnswer+profileTries*2*c.o.pprofDuration)
	defer cancel()
	for try := 1; ; try++ {
		body, err := c.e.client.Agent().Profile(ctx, a.nodeID, a.serverID, profile, seconds, debug)
		if err == nil {
			c.saveBody(name, body)
			return nil
		}
		var refused *api.Error
		if !errors.As(err, &refused) || refused.Status != http.StatusConflict || try == profileTries {
			return err
		}
		select {
		case <-time.After(c.o.pprofDuration):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// events saves which events there are until ctx ends. What they carry is left out: jobs are among it, with their environments.
func (c *capture) events(ctx context.Context, topics []string) {
	const name = "cluster/eventstream.json"
	file, err := c.create(name)
	if err != nil {
		c.failed(name, err)
		return
	}
	enc := json.NewEncoder(file)
	err = c.e.client.EventStream(ctx, topics, c.o.eventIndex, func(batch *structs.Events) error {
		for i := range batch.Events {
			batch.Events[i].Payload = nil
		}
		return enc.Encode(batch)
	})
	if ctx.Err() != nil {
		err = nil
	}
	c.close(name, file, err)
}

// save saves the answer of a route.
func (c *capture) save(ctx context.Context, name, path string, q *api.Query) {
	ctx, cancel := context.WithTimeout(ctx, debugAnswer)
	defer cancel()
	body, err := c.e.client.Raw(ctx, path, q)
	if err != nil {
		c.failed(name, err)
		return
	}
	c.saveBody(name, body)
}

// saveBody saves and closes an answer.
func (c *capture) saveBody(name string, body io.ReadCloser) {
	defer body.Close() //nolint:errcheck // read only
	file, err := c.create(name)
	if err != nil {
		c.failed(name, err)
		return
	}
	_, err = io.Copy(file, body)
	c.close(name, file, err)
}

func (c *capture) saveValue(name string, v any) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false) // people read it
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		c.failed(name, err)
		return
	}
	c.saveBody(name, io.NopCloser(&text))
}

// create makes a file of the archive, with the directories that it is in.
func (c *capture) create(name string) (*debugFile, error) {
	path := filepath.Join(c.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // below the directory that was made for it
	return &debugFile{file, maxDebugFile}, err
}

// close closes a file and notes what went wrong with it.
func (c *capture) close(name string, file *debugFile, err error) {
	if closed := file.file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		c.failed(name, err)
	}
	c.mu.Lock()
	c.wrote++
	c.mu.Unlock()
	if c.o.verbose {
		c.progress("%s\n", name)
	}
}

// failed notes what could not be gathered.
func (c *capture) failed(what string, err error) {
	c.mu.Lock()
	c.errors = append(c.errors, printable.EscapeLine(what+": "+err.Error()))
	c.mu.Unlock()
	c.progress("Not gathered: %s: %s\n", what, err.Error())
}

// progress prints progress.
func (c *capture) progress(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.e.printf(format, args...)
}

// summary writes what was requested, and what of it could not be gathered. Nothing else runs any more.
func (c *capture) summary(name string) {
	failures := append([]string{}, c.errors...)
	agents := []string{}
	for _, a := range c.agents {
		agents = append(agents, a.dir)
	}
	c.saveValue("summary.json", map[string]any{
		"Name": name, "Version": VersionString(), "Ended": c.e.now().UTC().Format(time.RFC3339), "Duration": c.o.duration.String(),
		"Interval": c.o.interval.String(), "LogLevel": c.o.logLevel, "Agents": agents, "Errors": failures,
	})
	if len(failures) > 0 {
		c.saveBody("errors.txt", io.NopCloser(strings.NewReader(strings.Join(failures, "\n")+"\n")))
	}
}
