package workflow

import "testing"

// manyDomains is a gang of n members on distinct nodes, one rack of which has to hold all of them, and n racks of one node.
func manyDomains(n int) (nodes []Amounts, stages [][]Instance, gangs Gangs) {
	nodes, stages = make([]Amounts, n), [][]Instance{make([]Instance, n)}
	domains, members := make([]int, n), make([]int, n)
	for i := range n {
		nodes[i], stages[0][i] = Amounts{CPU: int64(n)}, Instance{Needs: Amounts{CPU: 1}}
		domains[i], members[i] = i, i
	}
	gangs = Gangs{
		Levels: [][]int{domains, domains}, List: []Gang{{Members: members, Name: "g"}},
		Distinct: []Distinct{{Members: members, Level: 1, Most: 1}},
	}
	return nodes, stages, gangs
}

// TestCrowdedGang: a gang of which each domain could hold all members, but for that they have to be on distinct nodes, has no room in any of them.
func TestCrowdedGang(t *testing.T) {
	nodes, stages, gangs := manyDomains(20)
	if g := gangs.Impossible(nodes, stages); g == nil || g.Name != "g" {
		t.Errorf("%+v", g)
	}
	if gangs.Distinct[0].Most = 20; gangs.Impossible(nodes, stages) != nil {
		t.Error("one node may have all")
	}
	gangs.Distinct[0].Members, gangs.Distinct[0].Most = gangs.Distinct[0].Members[:1], 1
	if gangs.Impossible(nodes, stages) != nil {
		t.Error("one is on a node of its own by itself")
	}
}

// BenchmarkImpossible looks at 1,000 domains for a gang of 1,000 members.
func BenchmarkImpossible(b *testing.B) {
	nodes, stages, gangs := manyDomains(1000)
	for b.Loop() {
		if gangs.Impossible(nodes, stages) == nil {
			b.Fatal("it has room")
		}
	}
}
