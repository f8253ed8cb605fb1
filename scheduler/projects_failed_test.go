package scheduler_test

import (
	"strings"
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// TestSlotsFromFailed: an entitled instance uses a slot of its project from the start, whoever leaves for it: those that failed the submission check, before
// the grace is over, or those of lower bands. Those beyond the slots take from them, too, but use none.
func TestSlotsFromFailed(t *testing.T) {
	preempts := func(p *projects) {
		p.config.PreemptionConfig.BatchSchedulerEnabled = true
		p.configure()
	}
	for _, row := range []struct {
		name, want string
		before     func(p *projects)
	}{
		{"failed", "other, own, own 1+0, own 1+0", func(p *projects) { p.submit("stranger", "other", 4) }},
		{"one failed", "normal, normal, normal, own 1+0", func(p *projects) {
			p.submit("", "normal", 3)
			p.submit("stranger", "other", 1)
		}},
		{"lower bands", "other, own, own 1+0, own 1+0", func(p *projects) {
			p.submit("", "other", 4, ofPriority(20))
			preempts(p)
		}},
		{"a node without slots", "other, other, other, own, own 1+0, own 1+0", func(p *projects) {
			p.setNode(noSlots(slotNodeOf("n0", 2)))
			p.submit("stranger", "other", 6)
		}},
		{"a gang", "gang 1+0, gang 1+0, other, other, own, own, own", func(p *projects) {
			p.slotNode("n2", 3)
			p.submit("stranger", "other", 7)
			p.submit("a", "gang", 2, ganged(0))
		}},
	} {
		p := newProjects(t)
		p.slotNode("n1", 4)
		p.gives("a", 2)
		row.before(p)
		p.submit("a", "own", 3, ofPriority(90))
		if got := p.on(); got != row.want {
			t.Errorf("%s: there run %s, not %s", row.name, got, row.want)
		}
	}
}

// TestMembersLeave: whose user is no member any more, or whose step is gone, uses no slots from the edit on, and leaves for anybody else's.
func TestMembersLeave(t *testing.T) {
	rows := []structs.CalendarRow{{Type: structs.SlotBatch, Count: 4}}
	for name, is := range map[string]*structs.ProjectNow{
		"members": {Name: "a", Users: []string{"other"}, Steps: []string{"synth"}, Rows: rows},
		"steps":   {Name: "a", Users: []string{"a"}, Rows: rows},
	} {
		p := newProjects(t)
		p.slotNode("n1", 4)
		p.becomes(&structs.ProjectNow{Name: "a", Users: []string{"a"}, Steps: []string{"synth"}, Rows: rows})
		p.submit("a", "own", 4, func(j *structs.Job) { j.Step = "synth" })
		if got := p.on(); got != "own 1+0, own 1+0, own 1+0, own 1+0" {
			t.Fatalf("%s: before, there run %s", name, got)
		}
		p.becomes(is)
		if got := p.on(); got != "own, own, own, own" {
			t.Errorf("%s: after the edit there run %s", name, got)
		}
		p.submit("", "normal", 3)
		if got := p.on(); got != "normal, normal, normal, own" {
			t.Errorf("%s: then there run %s", name, got)
		}
	}
}

// TestSlotsExplained: an instance on slots is said to use those of its project, and to be taken by nobody, even where higher bands preempt.
func TestSlotsExplained(t *testing.T) {
	p := newProjects(t)
	p.config.PreemptionConfig.BatchSchedulerEnabled = true
	p.configure()
	p.slotNode("n1", 4)
	p.gives("a", 2)
	p.submit("a", "own", 1, func(j *structs.Job) { j.TaskGroups[0].Tasks[0].Resources.MemoryMB = 2000 })
	out := scheduler.ExplainAlloc(scheduler.AllocInput{Alloc: p.sorted()[0], Config: p.config})
	text := strings.Join(out.Text, "\n")
	for _, want := range []string{
		`it uses a slot of type batch of project "a", and keeps 1 more on its node free of others, as guards`, "it is guaranteed: it has priority 50",
		"it cannot be preempted: it uses what its project was given",
	} {
		if !strings.Contains(text, want) || len(out.MayLoseTo) != 0 {
			t.Errorf("it may lose to %+v, and the text is\n%s\nwithout %q", out.MayLoseTo, text, want)
		}
	}
}
