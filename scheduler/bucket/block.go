package bucket

// A page lies in one block of memory: its head, its columns, its keys, and its
// children or values. The number of columns is rounded up to one of these, so
// that a block is one allocation of a fixed type.

// names are the keys' IDs, with their prefixes.
type names struct {
	prefixes [fan]uint64
	ids      [fan]string
}

// lay points the head of a block to its parts.
func (p *page[V]) lay(cols []int64, names *names) {
	p.cols, p.prefixes, p.ids = cols, &names.prefixes, &names.ids
}

func leafBlock[V any](columns int) *page[V] {
	n := columns * fan
	switch {
	case columns <= 2:
		b := new(struct {
			head  page[V]
			cols  [2 * fan]int64
			names names
			parts [fan]V
		})
		b.head.lay(b.cols[:n], &b.names)
		b.head.values = b.parts[:]
		return &b.head
	case columns <= 3:
		b := new(struct {
			head  page[V]
			cols  [3 * fan]int64
			names names
			parts [fan]V
		})
		b.head.lay(b.cols[:n], &b.names)
		b.head.values = b.parts[:]
		return &b.head
	case columns <= 4:
		b := new(struct {
			head  page[V]
			cols  [4 * fan]int64
			names names
			parts [fan]V
		})
		b.head.lay(b.cols[:n], &b.names)
		b.head.values = b.parts[:]
		return &b.head
	case columns <= 5:
		b := new(struct {
			head  page[V]
			cols  [5 * fan]int64
			names names
			parts [fan]V
		})
		b.head.lay(b.cols[:n], &b.names)
		b.head.values = b.parts[:]
		return &b.head
	case columns <= 6:
		b := new(struct {
			head  page[V]
			cols  [6 * fan]int64
			names names
			parts [fan]V
		})
		b.head.lay(b.cols[:n], &b.names)
		b.head.values = b.parts[:]
		return &b.head
	case columns <= 8:
		b := new(struct {
			head  page[V]
			cols  [8 * fan]int64
			names names
			parts [fan]V
		})
		b.head.lay(b.cols[:n], &b.names)
		b.head.values = b.parts[:]
		return &b.head
	case columns <= 10:
		b := new(struct {
			head  page[V]
			cols  [10 * fan]int64
			names names
			parts [fan]V
		})
		b.head.lay(b.cols[:n], &b.names)
		b.head.values = b.parts[:]
		return &b.head
	default:
		b := new(struct {
			head  page[V]
			cols  [MaxDims * fan]int64
			names names
			parts [fan]V
		})
		b.head.lay(b.cols[:n], &b.names)
		b.head.values = b.parts[:]
		return &b.head
	}
}

func innerBlock[V any](columns int) *page[V] {
	n := columns * fan
	switch {
	case columns <= 4:
		b := new(struct {
			head  page[V]
			cols  [4 * fan]int64
			names names
			parts [fan]*page[V]
		})
		b.head.lay(b.cols[:n], &b.names)
		b.head.kids = b.parts[:]
		return &b.head
	case columns <= 6:
		b := new(struct {
			head  page[V]
			cols  [6 * fan]int64
			names names
			parts [fan]*page[V]
		})
		b.head.lay(b.cols[:n], &b.names)
		b.head.kids = b.parts[:]
		return &b.head
	case columns <= 8:
		b := new(struct {
			head  page[V]
			cols  [8 * fan]int64
			names names
			parts [fan]*page[V]
		})
		b.head.lay(b.cols[:n], &b.names)
		b.head.kids = b.parts[:]
		return &b.head
	case columns <= 10:
		b := new(struct {
			head  page[V]
			cols  [10 * fan]int64
			names names
			parts [fan]*page[V]
		})
		b.head.lay(b.cols[:n], &b.names)
		b.head.kids = b.parts[:]
		return &b.head
	case columns <= 12:
		b := new(struct {
			head  page[V]
			cols  [12 * fan]int64
			names names
			parts [fan]*page[V]
		})
		b.head.lay(b.cols[:n], &b.names)
		b.head.kids = b.parts[:]
		return &b.head
	case columns <= 16:
		b := new(struct {
			head  page[V]
			cols  [16 * fan]int64
			names names
			parts [fan]*page[V]
		})
		b.head.lay(b.cols[:n], &b.names)
		b.head.kids = b.parts[:]
		return &b.head
	case columns <= 20:
		b := new(struct {
			head  page[V]
			cols  [20 * fan]int64
			names names
			parts [fan]*page[V]
		})
		b.head.lay(b.cols[:n], &b.names)
		b.head.kids = b.parts[:]
		return &b.head
	default:
		b := new(struct {
			head  page[V]
			cols  [(2*MaxDims + 1) * fan]int64
			names names
			parts [fan]*page[V]
		})
		b.head.lay(b.cols[:n], &b.names)
		b.head.kids = b.parts[:]
		return &b.head
	}
}
