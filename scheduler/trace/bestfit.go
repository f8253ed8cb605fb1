package trace

import "math"

// BestFit is the published method of that name, which packing is compared with: of the
// machines that fit, the one with the highest score
//
//	100 × (1 − (0.5 × (cpu left − cpu requested) / 128000 + 0.5 × (GPU left − GPU requested) / 8000))
//
// in thousandths of cores and GPUs, cut to an integer; of equal scores the lowest rank,
// then the first. A share goes to the fullest device that holds it, which is what the
// scheduler does too. It goes over all machines for each job: it is for proofs, not for
// use.
type BestFit struct {
	// Rank settles equal scores by the machine's name: the lowest wins. nil: by name.
	Rank map[string]int
	rank []int // by machine
}

// Choose implements Chooser.
func (b *BestFit) Choose(l *Ledger, row *Row) (int, bool) {
	if len(b.rank) != len(l.Machines) {
		b.rank = make([]int, len(l.Machines))
		for i := range l.Machines {
			at, known := b.Rank[l.Machines[i].Name]
			if b.rank[i] = i; b.Rank != nil {
				if b.rank[i] = at; !known {
					b.rank[i] = math.MaxInt
				}
			}
		}
	}
	best, bestScore := -1, 0
	for i := range l.Machines {
		m := &l.Machines[i]
		if !m.fits(row) {
			continue
		}
		score := bestFitScore(m, row)
		if best < 0 || score > bestScore || score == bestScore && b.rank[i] < b.rank[best] {
			best, bestScore = i, score
		}
	}
	return best, best >= 0
}

func bestFitScore(m *Machine, row *Row) int {
	cpu := float64(m.Left.CPU-int64(row.CPU)) / 128_000
	gpu := float64(m.Left.GPUMilli-row.instanceMilli()) / 8_000
	return int(100 * (1 - (0.5*cpu + 0.5*gpu)))
}
