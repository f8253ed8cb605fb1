package structs

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

// The golden example of priorities in semantics part 4: a recognised job has 20 at 0 s, 120 at 20 s, 121 at 40 s and 122 at 60 s; a normal one
// of 20 has 22 after two cycles, 32 when it is requeued, 33 a cycle later, and 43 when it is requeued again.
func TestPriorityOfProjects(t *testing.T) {
	c := DefaultSchedulerConfiguration()
	job := &Job{ID: "a", Priority: 20}
	cycles := func(n int) int64 { return int64(n) * int64(20*time.Second) }
	recognised := &PendingRequest{JobID: "a", Since: cycles(10)}
	for n, want := range []int64{20, 120, 121, 122} {
		if got := c.PriorityOf(job, recognised, StandingRecognised, cycles(10+n)).Total; got != want {
			t.Errorf("recognised, %d s: %d, want %d", 20*n, got, want)
		}
	}
	c.Aging = new(int)
	if got := c.PriorityOf(job, recognised, StandingRecognised, cycles(12)).Total; got != 120 {
		t.Errorf("recognised, nothing ages: %d, want 120", got)
	}
	c.Aging = nil
	for _, row := range []struct {
		requeued int
		aged     int64
		since    int
		want     int64
	}{{0, 0, 8, 22}, {1, 2, 10, 32}, {1, 2, 9, 33}, {2, 3, 10, 43}} {
		request := &PendingRequest{JobID: "a", Since: cycles(row.since), Aged: row.aged, Requeued: row.requeued}
		if got := c.PriorityOf(job, request, StandingNormal, cycles(10)).Total; got != row.want {
			t.Errorf("%+v: %d", row, got)
		}
	}
}

// Every recognised job stands above every normal one, and those that failed the check below; within a standing all age alike.
func TestRankOfProjects(t *testing.T) {
	c := DefaultSchedulerConfiguration()
	rank := func(standing int, since int64) Rank {
		return c.Rank(&Job{ID: "a", Priority: 20}, &PendingRequest{Since: since}, 0).OfProject(standing, &c)
	}
	long, now := int64(0), int64(1000*time.Hour)
	recognised, normal, failed := rank(StandingRecognised, now), rank(StandingNormal, long), rank(StandingFailed, long)
	if recognised.Compare(&normal) >= 0 || normal.Compare(&failed) >= 0 {
		t.Errorf("%+v %+v %+v", recognised, normal, failed)
	}
	if got := recognised.Number - rank(StandingNormal, now).Number; got != DefaultAllocatedBonus {
		t.Errorf("the bonus is %d", got)
	}
}

func TestSlotSettings(t *testing.T) {
	minute, negative := time.Minute, -time.Second
	part, count, nan := 1.5, -1, math.NaN()
	for _, row := range []struct {
		s    *SlotSettings
		want string
	}{
		{nil, ""},
		{&SlotSettings{Types: []SlotType{{Name: "gpu", GPUs: 1, Kind: "A100", Grace: &minute}}}, ""},
		{&SlotSettings{Types: []SlotType{{Name: "a b"}}}, "a type of slots is named by"},
		{&SlotSettings{Types: []SlotType{{Name: "a"}, {Name: "a"}}}, "stated twice"},
		{&SlotSettings{Types: []SlotType{{Name: "a", Cores: -1}}}, "must not be negative"},
		{&SlotSettings{Types: []SlotType{{Name: "a", Kind: "A100"}}}, "without gpus"},
		{&SlotSettings{Types: []SlotType{{Name: "a", Grace: &negative}}}, "grace -1s: must not be negative"},
		{&SlotSettings{Grace: &negative}, "grace -1s: must not be negative"},
		{&SlotSettings{AllocatedBonus: &count}, "allocated_bonus -1: must be 0 to 1000000"},
		{&SlotSettings{RequeueBonus: &count}, "requeue_bonus -1: must be"},
		{&SlotSettings{MaxRequeues: &count}, "max_requeues -1: must be"},
		{&SlotSettings{SuspendLimit: &negative}, "suspend_limit -1s: must be more than 0"},
		{&SlotSettings{Light: &part}, "light 1.5: must be 0 to 1"},
		{&SlotSettings{Light: &nan}, "light NaN: must be 0 to 1"},
		{&SlotSettings{Types: make([]SlotType, MaxSlotTypes+1)}, "at most 64"},
	} {
		if err := row.s.Validate(); (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%+v: %v, want %q", row.s, err, row.want)
		}
	}
	c := SchedulerConfiguration{Slots: &SlotSettings{Types: []SlotType{{Name: SlotBatch, Cores: 4}}, Grace: &minute}}
	e := c.Effective().Slots
	if len(e.Types) != 4 || e.Types[0].Cores != 4 || *e.Types[0].Grace != minute || *e.Types[2].Grace != 0 || *e.Light != DefaultLight {
		t.Errorf("%+v", e)
	}
	for _, want := range e.Types {
		if got := c.SlotTypeOf(want.Name); got.Cores != want.Cores || *got.Grace != *want.Grace {
			t.Errorf("%s: %+v, want %+v", want.Name, got, want)
		}
	}
}

// What is stored leaves out what is at its default, and has the effect of what was stated.
func TestCanonicalSlots(t *testing.T) {
	minute, long, none := time.Minute, 2*time.Minute, time.Duration(0)
	part, count := DefaultLight, 0
	for _, row := range []struct{ s, want *SlotSettings }{
		{nil, nil},
		{&SlotSettings{}, nil},
		{(*SlotSettings)(nil).Effective(), nil},
		{&SlotSettings{Grace: &minute, Light: &part, Types: []SlotType{{Name: SlotBatch, Cores: 1, Grace: &minute}}}, nil},
		{&SlotSettings{MaxRequeues: &count}, &SlotSettings{MaxRequeues: &count}},
		// A type of the site exists because it is stated, whatever its volume.
		{&SlotSettings{Types: []SlotType{{Name: "wide"}}}, &SlotSettings{Types: []SlotType{{Name: "wide", Cores: 1}}}},
		{&SlotSettings{Types: []SlotType{{Name: SlotBatch, MemoryMB: 1}}}, &SlotSettings{Types: []SlotType{{Name: SlotBatch, Cores: 1, MemoryMB: 1}}}},
		{&SlotSettings{Types: []SlotType{{Name: SlotOverflow}, {Name: SlotInteractiveLight, Grace: &none}}}, nil},
		// A grace that is the settings' follows them; another one stays.
		{&SlotSettings{Grace: &long, Types: []SlotType{{Name: SlotBatch, Grace: &long}}}, &SlotSettings{Grace: &long}},
		{&SlotSettings{Grace: &long, Types: []SlotType{{Name: SlotBatch, Grace: &minute}}},
			&SlotSettings{Grace: &long, Types: []SlotType{{Name: SlotBatch, Cores: 1, Grace: &minute}}}},
	} {
		got := row.s.Canonical()
		if !reflect.DeepEqual(got, row.want) {
			t.Errorf("%+v: have %+v, want %+v", row.s, got, row.want)
		}
		if !reflect.DeepEqual(got.Effective(), row.s.Effective()) {
			t.Errorf("%+v: the effect is %+v", row.s, got.Effective())
		}
	}
}

// A slot has one core, and for each of its cores the node's memory divided by the node's cores.
func TestVolumeOfSlots(t *testing.T) {
	r := &NodeResources{Cpu: NodeCpuResources{CpuShares: 16_000, TotalCpuCores: 8}, Memory: NodeMemoryResources{MemoryMB: 32_000}}
	for _, row := range []struct {
		slot        SlotType
		mhz, memory int64
	}{
		{SlotType{}, 2000, 4000},
		{SlotType{Cores: 3}, 6000, 12_000},
		{SlotType{Cores: 3, MemoryMB: 7}, 6000, 7},
		{SlotType{Cores: maxSlotAmount}, 16_000, 32_000},
		{SlotType{Cores: maxSlotAmount, MemoryMB: maxSlotAmount}, 16_000, maxSlotAmount},
	} {
		if mhz, memory := row.slot.VolumeOn(r); mhz != row.mhz || memory != row.memory {
			t.Errorf("%+v: %d MHz, %d MiB", row.slot, mhz, memory)
		}
	}
	if mhz, memory := (SlotType{}).VolumeOn(&NodeResources{Memory: r.Memory}); mhz != 0 || memory != 0 {
		t.Errorf("no cores: %d MHz, %d MiB", mhz, memory)
	}
}
