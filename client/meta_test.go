package client

import (
	"maps"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/client/driver"
	"github.com/nomadish/nomadish/client/sim"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// metaOf asks a client for a node's metadata, or changes them.
func metaOf(r *rig, method, node string, change map[string]*string) (*structs.NodeMeta, error) {
	var reply structs.NodeMetaReply
	err := r.s.call(r.c.NodeID(), method, &structs.NodeMetaRequest{NodeID: node, Meta: change}, &reply)
	return reply.Node, err
}

// TestNodeMeta: what is set lies over what is configured, reaches the servers and outlives the agent.
func TestNodeMeta(t *testing.T) {
	r := newRig(t).start()
	id := r.c.NodeID()
	static := map[string]string{"rack": "r7", "connect.log_level": "info", "connect.proxy_concurrency": "1"}
	shows := func(what string, meta *structs.NodeMeta, err error, want map[string]string, dynamic ...string) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if !maps.Equal(meta.Meta, want) || !maps.Equal(meta.Static, static) || len(meta.Dynamic) != len(dynamic) {
			t.Errorf("%s: %+v, want %v and dynamically %v", what, meta, want, dynamic)
		}
		for _, key := range dynamic {
			if _, there := meta.Dynamic[key]; !there {
				t.Errorf("%s: %q is missing among %v", what, key, meta.Dynamic)
			}
		}
	}
	registered := func(what string, want map[string]string) {
		t.Helper()
		r.s.until(what, func() bool { return maps.Equal(r.s.nodes[id].Meta, want) })
	}
	meta, err := metaOf(r, wire.MethodClientMetaRead, id, nil)
	shows("at first", meta, err, static)
	class := r.c.nodes[0].Node().ComputedClass

	want := map[string]string{"connect.log_level": "info", "connect.proxy_concurrency": "1", "canary": "yes"}
	meta, err = metaOf(r, wire.MethodClientMetaApply, id, map[string]*string{"rack": nil, "canary": ptr("yes")})
	shows("changed", meta, err, want, "rack", "canary")
	registered("the change is registered", want)
	if now := r.c.nodes[0].Node().ComputedClass; now == class {
		t.Error("the node's class is what it was")
	}
	looked := r.c.nodes[0].Node().Copy() // the machine was looked at, beginning before the change
	looked.Meta = maps.Clone(static)
	r.c.nodes[0].become(looked)
	if got := r.c.nodes[0].Node().Meta; !maps.Equal(got, want) {
		t.Errorf("after a look at the machine: %v", got)
	}

	r.stop()
	r.s.change(func() { clear(r.s.sessions) })
	r.start()
	registered("the change is registered by a new life", want)
	meta, err = metaOf(r, wire.MethodClientMetaRead, "", nil)
	shows("in a new life", meta, err, want, "rack", "canary")
	want = maps.Clone(static)
	meta, err = metaOf(r, wire.MethodClientMetaApply, id, map[string]*string{"rack": ptr("r7"), "canary": nil})
	shows("back", meta, err, want, "rack", "canary")
	registered("going back is registered", want)

	before := r.s.registrations(id)
	for what, bad := range map[string]map[string]*string{"nothing": nil, "a name": {"a/b": ptr("c")}, "too much": tooMuchMeta()} {
		if _, err := metaOf(r, wire.MethodClientMetaApply, id, bad); structs.CodeOf(err) != structs.CodeBadRequest {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := metaOf(r, wire.MethodClientMetaApply, "another", map[string]*string{"a": nil}); structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("another node: %v", err)
	}
	meta, err = metaOf(r, wire.MethodClientMetaRead, id, nil)
	shows("after what was refused", meta, err, want, "rack", "canary")
	if now := r.s.registrations(id); now != before {
		t.Errorf("what was refused is registered: %d times, not %d", now, before)
	}
}

// tooMuchMeta is more than there is room for in a node.
func tooMuchMeta() map[string]*string {
	out := map[string]*string{}
	for i := range structs.MaxNodePairBytes/structs.MaxNodeValue + 1 {
		out["k"+strings.Repeat("x", i)] = ptr(strings.Repeat("v", structs.MaxNodeValue))
	}
	return out
}

// TestNodeMetaForgets: that a name is unset which is not configured is remembered only as long as there is room.
func TestNodeMetaForgets(t *testing.T) {
	m := newMetadata(map[string]string{"rack": "r7"}, nil)
	name := func(i int) string { return "k" + strings.Repeat("x", i%200) + strings.Repeat("y", i/200) }
	for i := range structs.MaxNodePairs - 1 {
		m.dynamic = m.changed(map[string]*string{"rack": nil, name(i): nil})
	}
	if len(m.dynamic) != structs.MaxNodePairs {
		t.Fatalf("%d names are remembered", len(m.dynamic))
	}
	m.dynamic = m.changed(map[string]*string{"one.more": ptr("1")})
	if _, kept := m.dynamic["rack"]; len(m.dynamic) != 2 || !kept {
		t.Errorf("%d names are remembered, rack among them: %v", len(m.dynamic), kept)
	}
}

// TestSimulatedNodeMeta: a simulated node has metadata of its own.
func TestSimulatedNodeMeta(t *testing.T) {
	r := newRig(t)
	r.config.Drivers = []driver.Driver{fakeDriver{MockDriver, r.w}}
	r.config.Simulate = []sim.Layout{{Name: "n", Count: 2, Cores: 1, MHz: 1, Memory: 1}}
	r.start()
	r.s.until("both are there", func() bool { return len(r.s.nodes) == 2 && len(r.s.sessions) == 2 })
	one, other := r.c.nodes[0].id, r.c.nodes[1].id
	if _, err := metaOf(r, wire.MethodClientMetaApply, one, map[string]*string{"canary": ptr("yes")}); err != nil {
		t.Fatal(err)
	}
	r.s.until("it is registered", func() bool { return r.s.nodes[one].Meta["canary"] == "yes" })
	if meta, err := metaOf(r, wire.MethodClientMetaRead, other, nil); err != nil || len(meta.Dynamic) > 0 {
		t.Errorf("the other node: %+v, %v", meta, err)
	}
}
