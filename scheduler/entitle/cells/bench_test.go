package cells

import (
	"fmt"
	"testing"
)

// BenchmarkBind finds the best cell for one of 100 owners, binds it and gives it back, where others use half of all GPUs without
// a right: of 8 GPUs every cell costs something, of 1 GPU some do not.
func BenchmarkBind(b *testing.B) {
	for _, nodes := range []int{1000, 10000, 100000} {
		c := tree222(b)
		e := c.Edit()
		for i := range nodes {
			e.PutNode(Node{ID: fmt.Sprintf("node-%06d", i), Ready: true})
			e.SetUsers(fmt.Sprintf("node-%06d", i), []User{{1 << (i % 8), 1 + i%97}, {1 << ((i + 4) % 8), 50}, {3 << (i % 7), 20}})
		}
		for i := range 100 {
			e.Give(fmt.Sprintf("tenant-%d", i), whole, nodes/250, 0)
			e.Give(fmt.Sprintf("tenant-%d", i), gpu, 2, 0)
		}
		chain := e.Chain()
		for _, k := range []Kind{gpu, whole} {
			b.Run(fmt.Sprintf("nodes=%d/gpus=%d", nodes, chain.Devices(k)), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					e := chain.Edit()
					for cand := range e.Candidates(k) {
						if err := e.Bind(cand.Cell, k, "tenant-7", false); err != nil {
							b.Fatal(err)
						}
						break
					}
					_ = e.Chain()
				}
			})
		}
		b.Run(fmt.Sprintf("nodes=%d/use", nodes), func(b *testing.B) {
			b.ReportAllocs()
			users := [][]User{{{1, 10}}, {{1, 10}, {4, 20}}}
			for i := 0; b.Loop(); i++ {
				e := chain.Edit()
				e.SetUsers(fmt.Sprintf("node-%06d", i*7919%nodes), users[i%2])
				_ = e.Chain()
			}
		})
	}
}
