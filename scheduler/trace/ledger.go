package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/structs"
)

// Amounts are what nodes have or work takes: MHz, MiB, thousandths of GPUs.
type Amounts struct {
	CPU      int64
	MemoryMB int64
	GPUMilli int64
}

func (a *Amounts) add(o Amounts, times int64) {
	a.CPU += times * o.CPU
	a.MemoryMB += times * o.MemoryMB
	a.GPUMilli += times * o.GPUMilli
}

// Machine is a node as the ledger keeps it.
type Machine struct {
	ID   string
	Name string
	// Left is what nobody holds.
	Left Amounts
	Has  Amounts
	// GPUs is what is left of each, in thousandths.
	GPUs  []int
	Model string // of its GPUs; "": it has none
	ids   map[string]int
}

// Ledger is a second account of what is in use, apart from the scheduler's: for figures,
// for choosers, and to find an error of either.
type Ledger struct {
	Machines []Machine // by name, then ID
	byID     map[string]int
	Has      Amounts
	Used     Amounts
	// touched are machines that were changed since fragmentation was last looked at.
	touched []int
	dirty   []bool
}

// NewLedger reads what nodes have. Those with GPUs of several models count as of the
// first one.
func NewLedger(nodes []*structs.Node) (*Ledger, error) {
	l := &Ledger{byID: make(map[string]int, len(nodes))}
	for _, n := range nodes {
		if n.NodeResources == nil {
			return nil, fmt.Errorf("node %s: it has no resources", cmp.Or(n.Name, n.ID))
		}
		m := Machine{ID: n.ID, Name: n.Name, ids: map[string]int{}}
		m.Has = Amounts{CPU: n.NodeResources.Cpu.CpuShares, MemoryMB: n.NodeResources.Memory.MemoryMB}
		for _, d := range n.NodeResources.Devices {
			if d.Type != "gpu" {
				continue
			}
			m.Model = cmp.Or(m.Model, d.Name)
			for _, one := range d.Instances {
				m.ids[one.ID] = len(m.GPUs)
				m.GPUs = append(m.GPUs, structs.DeviceShareWhole)
			}
		}
		m.Has.GPUMilli = int64(len(m.GPUs)) * structs.DeviceShareWhole
		m.Left = m.Has
		l.Has.add(m.Has, 1)
		l.Machines = append(l.Machines, m)
	}
	slices.SortFunc(l.Machines, func(a, b Machine) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID))
	})
	l.dirty = make([]bool, len(l.Machines))
	for i := range l.Machines {
		if _, twice := l.byID[l.Machines[i].ID]; twice {
			return nil, fmt.Errorf("node %s: its ID %s is another's too", l.Machines[i].Name, l.Machines[i].ID)
		}
		l.byID[l.Machines[i].ID] = i
		l.touch(i)
	}
	return l, nil
}

func (l *Ledger) touch(node int) {
	if !l.dirty[node] {
		l.dirty[node] = true
		l.touched = append(l.touched, node)
	}
}

// move takes (1) or releases (-1) what an instance holds on a node. Suspended work
// usages memory alone. It fails if more is taken than there is.
func (l *Ledger) move(node int, row *Row, in *structs.Instance, sign int, memory bool) error {
	m := &l.Machines[node]
	take := Amounts{CPU: int64(row.CPU)}
	if memory {
		take.MemoryMB = int64(row.MemoryMB)
	}
	for _, d := range in.Devices[taskName] {
		share := cmp.Or(d.Share, structs.DeviceShareWhole)
		for _, id := range d.DeviceIDs {
			at, known := m.ids[id]
			if !known {
				return fmt.Errorf("node %s has no device %s", m.Name, id)
			}
			m.GPUs[at] -= sign * share
			if m.GPUs[at] < 0 || m.GPUs[at] > structs.DeviceShareWhole {
				return fmt.Errorf("node %s: %d thousandths of device %s are left", m.Name, m.GPUs[at], id)
			}
			take.GPUMilli += int64(share)
		}
	}
	m.Left.add(take, -int64(sign))
	l.Used.add(take, int64(sign))
	l.touch(node)
	if m.Left.CPU < 0 || m.Left.MemoryMB < 0 {
		return fmt.Errorf("node %s: %d MHz and %d MiB are left", m.Name, m.Left.CPU, m.Left.MemoryMB)
	}
	return nil
}

// fits reports whether one instance of a row has room on a machine.
func (m *Machine) fits(r *Row) bool {
	if int64(r.CPU) > m.Left.CPU || int64(r.MemoryMB) > m.Left.MemoryMB || !m.may(r) {
		return false
	}
	need := r.Share
	n := r.GPUs
	if !r.part() {
		need = structs.DeviceShareWhole
	}
	for _, left := range m.GPUs {
		if left >= need && n > 0 {
			n--
		}
	}
	return n == 0
}

// may reports whether a machine has GPUs of a model that a row takes.
func (m *Machine) may(r *Row) bool {
	return r.GPUs == 0 || m.Model != "" && (len(r.Models) == 0 || slices.Contains(r.Models, m.Model))
}

// giveMemory returns what a suspended instance holds.
func (l *Ledger) giveMemory(node int, row *Row) {
	memory := Amounts{MemoryMB: int64(row.MemoryMB)}
	l.Machines[node].Left.add(memory, 1)
	l.Used.add(memory, -1)
	l.touch(node)
}
