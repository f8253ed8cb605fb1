package cell

import "testing"

var benchTrees = []struct {
	name string
	root Vertex
}{
	{"8", even([]int{2, 2, 2}, "node", "socket", "pcie", "gpu")},
	{"16", even([]int{2, 4, 2}, "node", "socket", "pcie", "gpu")},
	{"512", even([]int{4, 16, 8}, "node", "socket", "pcie", "gpu")},
}

func BenchmarkFind(b *testing.B) {
	for _, tree := range benchTrees {
		for _, request := range []struct {
			name    string
			request Request
		}{{"1", Request{Count: 1}}, {"2", Request{Count: 2}}, {"share", Request{Count: 1, Share: 500}}} {
			b.Run(tree.name+"/"+request.name, func(b *testing.B) {
				st := state(b, tree.root)
				st.Take(0, 500)
				st.Take(3, 1000)
				b.ReportAllocs()
				for b.Loop() {
					if _, found := st.Find(request.request); !found {
						b.Fatal("nothing found")
					}
				}
			})
		}
		b.Run(tree.name+"/pieces", func(b *testing.B) { // every second device is held
			st := state(b, tree.root)
			for d := 0; d < st.Layout().Devices(); d += 2 {
				st.Take(d, 1000)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, found := st.Find(Request{Count: 4}); !found {
					b.Fatal("nothing found")
				}
			}
		})
		b.Run(tree.name+"/allowed", func(b *testing.B) {
			st := state(b, tree.root)
			allowed := func(d int) bool { return d > 3 }
			b.ReportAllocs()
			for b.Loop() {
				if _, found := st.Find(Request{Count: 2, Allowed: allowed}); !found {
					b.Fatal("nothing found")
				}
			}
		})
	}
}

func BenchmarkTakeGive(b *testing.B) {
	for _, tree := range benchTrees {
		b.Run(tree.name, func(b *testing.B) {
			st := state(b, tree.root)
			b.ReportAllocs()
			for b.Loop() {
				st.Take(5, 1000)
				st.Give(5, 1000)
			}
		})
	}
}

func BenchmarkClone(b *testing.B) {
	for _, tree := range benchTrees {
		b.Run(tree.name, func(b *testing.B) {
			st := state(b, tree.root)
			b.ReportAllocs()
			for b.Loop() {
				st = st.Clone()
			}
		})
	}
}

func BenchmarkSums(b *testing.B) {
	for _, tree := range benchTrees {
		st := state(b, tree.root)
		st.Take(0, 500)
		st.Take(3, 1000)
		sum := 0
		b.Run(tree.name+"/CellsBySize", func(b *testing.B) {
			for b.Loop() {
				sum += st.CellsBySize()[0]
			}
		})
		b.Run(tree.name+"/Free+MaxPartial", func(b *testing.B) {
			for b.Loop() {
				sum += st.Free() + st.MaxPartial()
			}
		})
	}
}

func BenchmarkNewLayout(b *testing.B) {
	for _, tree := range benchTrees {
		b.Run(tree.name, func(b *testing.B) {
			for b.Loop() {
				layout(b, tree.root)
			}
		})
	}
}
