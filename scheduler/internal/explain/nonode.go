package explain

import (
	"fmt"
	"strings"

	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// reasonsNamed is how many reasons a text of [NoNode] has.
const reasonsNamed = 4

// NoNode returns why none of some nodes may run instances of a group, whatever is free there: the reasons with the numbers of nodes that they refuse, in the
// words of an explanation of a job. "": one of them may, or there are none.
func NoNode(e *world.Edit, f *feasible.Feasibility, nodes []*structs.Node) string {
	for _, n := range nodes {
		if f.Verdict(n).OK() {
			return ""
		}
	}
	find := &search.Search{Edit: e, Fit: f}
	x := survey{find: find, about: newNodeReasons(find), tally: map[reason]*structs.NodeReason{}, descriptions: map[string]map[string]int{}}
	for _, n := range nodes {
		_, list := x.about.refuse(n)
		for _, r := range list {
			x.count(r, n)
			x.hear(r, n)
		}
	}
	var texts []string
	for _, r := range x.reasons() {
		if len(texts) == reasonsNamed {
			texts = append(texts, "and more")
			break
		}
		count := fmt.Sprintf("%d nodes: ", r.Nodes)
		if r.Nodes == 1 {
			count = "1 node: "
		}
		texts = append(texts, count+r.Text)
	}
	return strings.Join(texts, "; ")
}
