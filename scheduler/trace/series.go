package trace

// Sample is how things stood in one stretch of time: means over it, in parts of all
// that there is.
type Sample struct {
	// From is when the stretch begins, in seconds since the trace's start.
	From float64
	// GPU, CPU and Memory are what was in use.
	GPU    float64
	CPU    float64
	Memory float64
	// Waiting is how many jobs waited, WaitingGPU what they waited for.
	Waiting    float64
	WaitingGPU float64
	// Guaranteed is what is used by right of what tenants own, LossGPU what waits although what its tenant owns would hold it.
	Guaranteed float64 `json:",omitempty"`
	LossGPU    float64 `json:",omitempty"`
	// Reserved is what workflows have reserved, Lent and Idle what of it is lent, and used by nobody: of GPUs, or of processors where there are no GPUs.
	Reserved float64 `json:",omitempty"`
	Lent     float64 `json:",omitempty"`
	Idle     float64 `json:",omitempty"`
	// Fragmentation is how much idle GPU the typical request could not use at the end of the
	// stretch; of means over longer times it is not kept.
	Fragmentation float64 `json:",omitempty"`
}

// samplesMost bounds a series: when there are more samples, each two become one.
const samplesMost = 512

// firstStretch is the length of a sample in the beginning, in nanoseconds.
const firstStretch = int64(60e9)

// series is means over stretches of time, in bounded memory however long the time is.
type series struct {
	stretch int64 // nanoseconds
	from    int64 // of the one that is open
	at      int64 // up to where it is filled
	sums    levels
	done    []levels
	// total is the same over all time, and until is total at the last arrival.
	total, until levels
	start        int64
	last         int64 // arrival
}

// levels are sums of amounts times nanoseconds.
type levels struct {
	gpu, cpu, memory, waiting, waitingGPU float64
	guaranteed, loss                      float64
	reserved, lent, idle                  float64
	frag                                  float64 // not a sum
}

func (l *levels) add(o *levels, times float64) {
	l.gpu += o.gpu * times
	l.cpu += o.cpu * times
	l.memory += o.memory * times
	l.waiting += o.waiting * times
	l.waitingGPU += o.waitingGPU * times
	l.guaranteed += o.guaranteed * times
	l.loss += o.loss * times
	l.reserved += o.reserved * times
	l.lent += o.lent * times
	l.idle += o.idle * times
}

func newSeries(start int64) *series {
	return &series{stretch: firstStretch, from: start, at: start, start: start}
}

// advance records that levels were such until a time; frag returns the fragmentation, when a
// sample ends.
func (s *series) advance(to int64, now levels, frag func() float64) {
	if to <= s.at {
		return
	}
	s.total.add(&now, float64(to-s.at))
	measured := false
	for to >= s.from+s.stretch {
		end := s.from + s.stretch
		s.sums.add(&now, float64(end-s.at))
		if !measured {
			now.frag, measured = frag(), true
		}
		s.sums.frag = now.frag
		s.done = append(s.done, s.sums)
		s.sums, s.from, s.at = levels{}, end, end
		if len(s.done) >= samplesMost {
			s.halve()
		}
	}
	s.sums.add(&now, float64(to-s.at))
	s.at = to
}

// halve makes each two samples one. Their number is even.
func (s *series) halve() {
	for i := range len(s.done) / 2 {
		a, b := s.done[2*i], s.done[2*i+1]
		a.add(&b, 1)
		a.frag = b.frag
		s.done[i] = a
	}
	s.done = s.done[:len(s.done)/2]
	s.stretch *= 2
}

// arrived notes the time of an arrival.
func (s *series) arrived() { s.last, s.until = s.at, s.total }

// parts returns levels as parts of what there is, over so many nanoseconds.
func (l *levels) parts(has Amounts, length float64) Sample {
	part := func(sum float64, of int64) float64 {
		if of == 0 || length <= 0 {
			return 0
		}
		return round(sum/length/float64(of), 6)
	}
	all := has.GPUMilli
	if all == 0 {
		all = has.CPU
	}
	return Sample{
		Reserved: part(l.reserved, all), Lent: part(l.lent, all), Idle: part(l.idle, all),
		GPU: part(l.gpu, has.GPUMilli), CPU: part(l.cpu, has.CPU), Memory: part(l.memory, has.MemoryMB),
		Waiting: part(l.waiting, 1), WaitingGPU: part(l.waitingGPU, has.GPUMilli),
		Guaranteed: part(l.guaranteed, has.GPUMilli), LossGPU: part(l.loss, has.GPUMilli), Fragmentation: part(l.frag*length, has.GPUMilli),
	}
}

// samples returns the series. The last, short one has the fragmentation given.
func (s *series) samples(has Amounts, frag float64) []Sample {
	all := s.done
	if s.at > s.from {
		rest := s.sums
		rest.frag = frag
		all = append(all[:len(all):len(all)], rest)
	}
	out := make([]Sample, len(all))
	for i := range all {
		from := s.start + int64(i)*s.stretch
		length := min(s.stretch, s.at-from)
		out[i] = all[i].parts(has, float64(length))
		out[i].From = round(float64(from-s.start)/1e9, 3)
	}
	return out
}

// Point is what was allocated when so much had arrived.
type Point struct {
	// Arrived is the demand that had arrived, in whole percent of all GPUs, what was dropped among
	// it; Allocated and Fragmentation are the mean of what was in use and of what the typical request
	// could not use, in parts of all GPUs, over N arrivals.
	Arrived       int
	Allocated     float64
	Fragmentation float64
	N             int
}

// maxArrived bounds the percents that points are kept for.
const maxArrived = 1000

// curve is the points of a replay. Fragmentation is measured once a point.
type curve struct {
	sums    []float64
	frag    []float64
	n       []int
	arrived int64
}

// add notes how things stand after an arrival.
func (c *curve) add(milli int64, l *Ledger, frag func() float64) {
	c.arrived += milli
	if l.Has.GPUMilli == 0 {
		return
	}
	x := int((200*c.arrived + l.Has.GPUMilli) / (2 * l.Has.GPUMilli)) // rounded
	if x > maxArrived {
		return
	}
	for len(c.n) <= x {
		c.sums, c.frag, c.n = append(c.sums, 0), append(c.frag, 0), append(c.n, 0)
	}
	if c.n[x] == 0 {
		c.frag[x] = frag() / float64(l.Has.GPUMilli)
	}
	c.n[x]++
	c.sums[x] += float64(l.Used.GPUMilli) / float64(l.Has.GPUMilli)
}

func (c *curve) points() []Point {
	var out []Point
	for x, n := range c.n {
		if n > 0 {
			out = append(out, Point{x, round(c.sums[x]/float64(n), 8), round(c.frag[x], 6), n})
		}
	}
	return out
}
