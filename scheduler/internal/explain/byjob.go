package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/internal/decide"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Allocations in texts, those of one job together.

// allocsInText bounds the allocations of a job that a text names by ID.
const allocsInText = 5

// victimsText describes allocations that are to end.
type victimsText struct{ jobs []*jobVictims }

// jobVictims are those of a job with one priority.
type jobVictims struct {
	job      structs.NamespacedID
	priority int
	claim    string // by what right they run
	count    int
	named    []string
}

// add adds an allocation and its node.
func (t *victimsText) add(n *world.NodeState, u *world.Usage) {
	job, claim := structs.NamespacedID{ID: u.Owner.Job, Namespace: u.Owner.Namespace}, rightOf(u)
	at := slices.IndexFunc(t.jobs, func(j *jobVictims) bool {
		return j.job == job && j.priority == u.Owner.Terms.Priority && j.claim == claim
	})
	if at < 0 {
		at = len(t.jobs)
		t.jobs = append(t.jobs, &jobVictims{job: job, priority: u.Owner.Terms.Priority, claim: claim})
	}
	j := t.jobs[at]
	if j.count++; len(j.named) < allocsInText {
		j.named = append(j.named, structs.ShortID(u.ID)+" on "+cmp.Or(n.Node.Name, structs.ShortID(n.ID)))
	}
}

// rightOf describes the claim that a usage uses; "": none.
func rightOf(u *world.Usage) string {
	switch t := &u.Owner.Terms; {
	case t.Claim == structs.ClaimSlots && t.Slots != nil:
		return fmt.Sprintf(", on slots of project %q", t.Slots.Project)
	case t.Claim == structs.ClaimCells:
		return fmt.Sprintf(", in cells of namespace %q", u.Owner.Namespace)
	case t.Claim == structs.ClaimWorkflow:
		return ", in the reservation of workflow " + t.WorkflowKey()
	}
	return ""
}

// text returns all of them, as seen by a job of a namespace.
func (t *victimsText) text(namespace string) string {
	var texts []string
	for i, j := range t.jobs {
		of := fmt.Sprintf("%s, priority %d%s", j.job.JobText(namespace), j.priority, j.claim)
		switch more := j.count - len(j.named); {
		case i == jobsNamed:
			n := 0
			for _, other := range t.jobs[i:] {
				n += other.count
			}
			return strings.Join(append(texts, decide.Instances(n)+" of other jobs"), "; ")
		case j.count == 1:
			texts = append(texts, fmt.Sprintf("%s (%s)", j.named[0], of))
		case more > 0:
			texts = append(texts, fmt.Sprintf("%d instances of %s: %s and %d more", j.count, of, strings.Join(j.named, ", "), more))
		default:
			texts = append(texts, fmt.Sprintf("%d instances of %s: %s", j.count, of, strings.Join(j.named, ", ")))
		}
	}
	return strings.Join(texts, "; ")
}

// countsText returns how many allocations each job has, as seen by a job of a namespace: those with most first.
func countsText(jobs map[structs.NamespacedID]int, namespace string) string {
	names := slices.SortedFunc(maps.Keys(jobs), func(a, b structs.NamespacedID) int {
		return cmp.Or(cmp.Compare(jobs[b], jobs[a]), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.ID, b.ID))
	})
	var texts []string
	for i, name := range names {
		if i == jobsNamed {
			n := 0
			for _, other := range names[i:] {
				n += jobs[other]
			}
			texts = append(texts, fmt.Sprintf("%d of other jobs", n))
			break
		}
		texts = append(texts, fmt.Sprintf("%d of %s", jobs[name], name.JobText(namespace)))
	}
	return strings.Join(texts, ", ")
}
