package structs

import "testing"

func TestMainReason(t *testing.T) {
	f := func(m *AllocMetric, want string, nodes int) {
		t.Helper()
		if got, n := m.MainReason(); got != want || n != nodes {
			t.Errorf("%+v: %q on %d, want %q on %d", m, got, n, want, nodes)
		}
	}
	exhausted := func(d map[string]int, c map[string]int) *AllocMetric {
		return &AllocMetric{NodesEvaluated: 9, DimensionExhausted: d, ConstraintFiltered: c}
	}
	f(nil, "", 0)
	f(&AllocMetric{NodesEvaluated: 3}, "", 0)
	f(&AllocMetric{}, "no node in its pool takes work", 0)
	f(&AllocMetric{NodePool: "blue"}, `no node of node pool "blue" takes work`, 0)
	f(&AllocMetric{NodePool: "blue", NodesInPool: 2, NodesAvailable: map[string]int{"mars": 0, "luna": 0}},
		`no node that takes work is in datacenter "luna" or "mars"`, 0)
	f(&AllocMetric{NodePool: "blue", NodesInPool: 2}, "no node that takes work is in any of its datacenters", 0)
	f(exhausted(map[string]int{"memory": 2, "cpu": 3}, nil), "cpu exhausted", 3)
	f(exhausted(map[string]int{"memory": 2, "cpu": 2}, nil), "cpu exhausted", 2)
	f(exhausted(map[string]int{"memory": 2}, map[string]int{"${attr.x} = y": 3}), "${attr.x} = y filters", 3)
	f(exhausted(map[string]int{"memory": 3}, map[string]int{"${attr.x} = y": 3}), "memory exhausted", 3)
	f(exhausted(map[string]int{"devices: no free cell of level pcie for 2": 1}, nil), "devices: no free cell of level pcie for 2", 1)
}

func TestSlotsReason(t *testing.T) {
	f := func(m *AllocMetric, want string) {
		t.Helper()
		if got := m.SlotsReason(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	f(nil, "")
	f(&AllocMetric{DimensionExhausted: map[string]int{"cpu": 4, "slots of type \"batch\"": 4}}, "")
	f(&AllocMetric{DimensionExhausted: map[string]int{"cpu": 4, "slots: b": 4, "slots: a": 4}}, "slots: a")
}

func TestQueueEntryTexts(t *testing.T) {
	f := func(e QueueEntry, state, reason string) {
		t.Helper()
		if e.StateText() != state || e.ReasonText() != reason {
			t.Errorf("%+v: %q %q, want %q %q", e, e.StateText(), e.ReasonText(), state, reason)
		}
	}
	f(QueueEntry{State: QueueNotTried}, "not tried yet", "")
	f(QueueEntry{State: QueueWaiting, Reason: "x", ReasonNodes: 1}, "waiting", "x on 1 node")
	f(QueueEntry{State: QueueReserved, ReservedNodes: 1, Reason: "x", ReasonNodes: 2}, "reserved room on 1 node", "x on 2 nodes")
	f(QueueEntry{State: QueueReserved, ReservedNodes: 4, Reason: "x"}, "reserved room on 4 nodes", "x")
	f(QueueEntry{State: QueueSuspended, Suspended: 2}, "2 suspended", "")
}

func TestPriorityOf(t *testing.T) {
	c := DefaultSchedulerConfiguration()
	job := &Job{Priority: 50}
	cycle := int64(DefaultCycle)
	f := func(request *PendingRequest, now int64, want EffectivePriority) {
		t.Helper()
		want.Declared, want.Band, want.BandRange, want.Standing = 50, 1, PriorityBand{41, 70}, StandingNormal
		got := c.PriorityOf(job, request, StandingNormal, now)
		if got != want {
			t.Errorf("%+v at %d: %+v, want %+v", request, now, got, want)
		}
		rank := c.Rank(job, request, now)
		if have := c.EffectivePriority(&rank, now); have != got.Total {
			t.Errorf("%+v at %d: the rank says %d, its parts %d", request, now, have, got.Total)
		}
	}
	f(nil, 7*cycle, EffectivePriority{Total: 50})
	f(&PendingRequest{Missing: 1, Since: 3 * cycle}, 7*cycle, EffectivePriority{Total: 54, Aged: 4})
	f(&PendingRequest{Missing: 1, Since: 3 * cycle, Aged: 2, Requeued: 3}, 7*cycle, EffectivePriority{Total: 86, Aged: 6, Requeued: 3, RequeueBonus: 30})
	f(&PendingRequest{Aged: 2, Requeued: 1}, 7*cycle, EffectivePriority{Total: 62, Aged: 2, Requeued: 1, RequeueBonus: 10})
}
