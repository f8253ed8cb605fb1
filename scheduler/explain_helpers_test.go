package scheduler_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

func (c *cluster) explain() *structs.JobExplanation {
	c.t.Helper()
	x, err := scheduler.Explain(c.w, scheduler.ExplainInput{Input: c.input()})
	if err != nil {
		c.t.Fatalf("explain: %v", err)
	}
	return x
}

// submit registers a job and commits what the scheduler places of it.
func (c *cluster) submit(id string, j *structs.Job) {
	c.t.Helper()
	j.ID, c.job = id, nil
	c.register(j)
	c.settle()
}

// settle decides the job and commits that. It returns how many wait, by group.
func (c *cluster) settle() map[string]int {
	c.t.Helper()
	ev := c.newEval()
	ev.Namespace, ev.JobID, ev.Type, ev.Priority = c.job.Namespace, c.job.ID, c.job.Type, c.job.Priority
	plan, err := scheduler.Schedule(c.w, ev, c.input())
	if err != nil {
		c.t.Fatal(err)
	}
	reservations, refused, why := scheduler.Judge(c.w.Edit(), plan)
	if len(refused) > 0 {
		c.t.Fatalf("refused: %v %s", refused, why)
	}
	c.seed++
	c.commit(reservations)
	return plan.Evals[0].QueuedAllocations
}

// make makes a remedy, as its edits say it and no otherwise.
func (c *cluster) make(r *structs.Remedy) {
	c.t.Helper()
	job := asTree(c.t, c.job)
	changed := false
	for i := range r.Edits {
		e := &r.Edits[i]
		switch e.On {
		case structs.EditJob:
			c.patch(&job, e)
			changed = true
		case structs.EditConfig:
			tree := asTree(c.t, &c.config)
			c.patch(&tree, e)
			c.config = structs.SchedulerConfiguration{}
			c.fill(tree, &c.config)
		case structs.EditAlloc:
			if c.allocs[e.ID] == nil {
				c.t.Fatalf("there is no allocation %q to stop", e.ID)
			}
			c.client(func(a *structs.Allocation) bool { return a.ID == e.ID }, c.ended(false))
		case structs.EditNode:
			c.makeNode(e)
		case structs.EditCells:
			c.makeCells(e)
		default:
			c.t.Fatalf("an edit on %q", e.On)
		}
	}
	if changed {
		j := &structs.Job{}
		c.fill(job, j)
		if err := j.Validate(); err != nil && c.job.Validate() == nil {
			c.t.Fatalf("after %q the job is refused: %v", r.Text, err)
		}
		j.Canonicalize()
		c.register(j)
	}
}

// makeCells gives a namespace more cells of a level that it has.
func (c *cluster) makeCells(edit *structs.Edit) {
	c.t.Helper()
	more := &structs.CellQuota{}
	if err := json.Unmarshal(edit.Value, more); err != nil {
		c.t.Fatal(err)
	}
	quotas := slices.Clone(c.w.Quotas(edit.ID))
	at := slices.IndexFunc(quotas, func(q world.Quota) bool { return q.Level == more.Level })
	q := quotas[at]
	q.Count, q.Order = more.Count, 1000
	e := c.w.Edit()
	e.SetQuotas(edit.ID, append(quotas, q))
	c.w = e.World()
}

func (c *cluster) makeNode(e *structs.Edit) {
	c.t.Helper()
	if e.Op == structs.EditNew {
		if e.ID == "" {
			n := &structs.Node{}
			if err := json.Unmarshal(e.Value, n); err != nil {
				c.t.Fatal(err)
			}
			c.setNode(n)
			return
		}
		count := 0
		if err := json.Unmarshal(e.Value, &count); err != nil {
			c.t.Fatal(err)
		}
		for i := range count {
			n := c.nodes[e.ID].Copy()
			n.ID, n.Name = fmt.Sprintf("added-%d", i), fmt.Sprintf("added-%d", i)
			n.Status, n.SchedulingEligibility, n.DrainStrategy, n.DiskFull = structs.NodeStatusReady, structs.NodeEligible, nil, ""
			n.Attributes["unique.hostname"] = n.Name
			n.ComputeClass()
			c.setNode(n)
		}
		return
	}
	tree := asTree(c.t, c.nodes[e.ID])
	c.patch(&tree, e)
	n := &structs.Node{}
	c.fill(tree, n)
	n.ComputeClass()
	c.setNode(n)
}

func asTree(t tester, v any) (tree any) {
	t.Helper()
	if err := json.Unmarshal(asJSON(t, v), &tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

func (c *cluster) fill(tree, into any) {
	c.t.Helper()
	if err := json.Unmarshal(asJSON(c.t, tree), into); err != nil {
		c.t.Fatal(err)
	}
}

// patch does one step of a JSON Patch.
func (c *cluster) patch(tree *any, e *structs.Edit) {
	c.t.Helper()
	var value any
	if len(e.Value) > 0 {
		if err := json.Unmarshal(e.Value, &value); err != nil {
			c.t.Fatal(err)
		}
	}
	parts := strings.Split(strings.TrimPrefix(e.Path, "/"), "/")
	for i := range parts {
		parts[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(parts[i])
	}
	*tree = c.patched(*tree, parts, e, value)
}

func (c *cluster) patched(tree any, path []string, e *structs.Edit, value any) any {
	c.t.Helper()
	key, last := path[0], len(path) == 1
	switch at := tree.(type) {
	case map[string]any:
		switch {
		case !last:
			if _, found := at[key]; !found || at[key] == nil {
				at[key] = map[string]any{} // an empty map is left out
				if path[1] == "-" {
					at[key] = []any{}
				}
			}
			at[key] = c.patched(at[key], path[1:], e, value)
		case e.Op == structs.EditRemove:
			delete(at, key)
		default:
			if _, found := at[key]; e.Op == structs.EditReplace && !found && len(e.Was) > 0 && string(e.Was) != "0" {
				c.t.Fatalf("%s: there is no such field", e.Path)
			}
			at[key] = value
		}
		return at
	case []any:
		if key == "-" {
			return append(at, value)
		}
		i, err := strconv.Atoi(key)
		if err != nil || i >= len(at) {
			c.t.Fatalf("%s: %q is no place in a list of %d", e.Path, key, len(at))
		}
		switch {
		case !last:
			at[i] = c.patched(at[i], path[1:], e, value)
		case e.Op == structs.EditRemove:
			return slices.Delete(at, i, i+1)
		default:
			at[i] = value
		}
		return at
	}
	c.t.Fatalf("%s: %q is of nothing that has parts", e.Path, key)
	return nil
}

// copyOf is a cluster that can be changed without the other.
func (c *cluster) copyOf() *cluster {
	d := *c
	d.nodes, d.allocs = map[string]*structs.Node{}, map[string]*structs.Allocation{}
	for k, v := range c.nodes {
		d.nodes[k] = v
	}
	for k, v := range c.allocs {
		d.allocs[k] = v
	}
	return &d
}

// helps makes each remedy on a copy of its own and checks that it places what it says.
func (c *cluster) helps(group string, g *structs.GroupExplanation) {
	c.t.Helper()
	for i := range g.Smallest {
		r := &g.Smallest[i]
		d := c.copyOf()
		d.make(r)
		queued := d.settle()[group]
		before := c.copyOf().settle()[group]
		if queued >= before || r.All != (queued == 0) {
			c.t.Fatalf("%q (%s, all: %v): %d waited, and %d still do\nedits: %s", r.Text, r.Kind, r.All, before, queued, asJSON(c.t, r.Edits))
		}
	}
}
