package telemetry

// Value is the value of one series.
type Value struct {
	Labels *LabelSet // nil: none
	Value  float64
}

// Subject is what series are of that there may be any number of. Each has its own share of series.
type Subject string

// The subjects.
const (
	OfJobs        Subject = "jobs"
	OfAllocations Subject = "allocations"
	OfNodes       Subject = "nodes"
	OfNamespaces  Subject = "namespaces"
)

// subjects are all subjects.
var subjects = []Subject{OfJobs, OfAllocations, OfNodes, OfNamespaces}

// Batch is the values that sources have given at one time.
type Batch struct {
	max     int // series a subject
	order   []*Family
	values  map[*Family][]Value
	used    map[Subject]int
	dropped map[Subject]int
}

// NewBatch returns a new empty batch that holds at most so many series of each subject.
func NewBatch(maxSeries int) *Batch {
	return &Batch{max: maxSeries, values: map[*Family][]Value{}, used: map[Subject]int{}, dropped: map[Subject]int{}}
}

// Fit returns for how many of n things of a subject, of so many series each, there is room, and takes it. The series of the
// others count as dropped, and the caller leaves them out.
func (b *Batch) Fit(s Subject, n, each int) int {
	fit := min(n, max(0, b.max-b.used[s])/each)
	b.used[s] += fit * each
	b.dropped[s] += (n - fit) * each
	return fit
}

// Room is Fit of one thing: it reports whether there is room for it.
func (b *Batch) Room(s Subject, series int) bool { return b.Fit(s, 1, series) == 1 }

// Dropped returns how many series were left out for want of room.
func (b *Batch) Dropped() int {
	n := 0
	for _, dropped := range b.dropped { // order does not matter: a sum
		n += dropped
	}
	return n
}

// Add adds the value of a series.
func (b *Batch) Add(f *Family, value float64, labels *LabelSet) {
	have, ok := b.values[f]
	if !ok {
		b.order = append(b.order, f)
	}
	b.values[f] = append(have, Value{labels, value})
}

// Share adds values that their source keeps and never changes.
func (b *Batch) Share(f *Family, values []Value) {
	have, ok := b.values[f]
	switch {
	case len(values) == 0:
	case !ok:
		b.order = append(b.order, f)
		b.values[f] = values[:len(values):len(values)]
	default:
		b.values[f] = append(have, values...)
	}
}

// Each calls yield with every family that has values, and those.
func (b *Batch) Each(yield func(f *Family, values []Value)) {
	for _, f := range b.order {
		yield(f, b.values[f])
	}
}

var (
	droppedFamily = Named("telemetry.series_dropped")
	droppedLabels = func() map[Subject]*LabelSet {
		out := map[Subject]*LabelSet{}
		for _, s := range subjects {
			out[s] = Labels("of", string(s))
		}
		return out
	}()
)

// account adds how many series were dropped.
func (b *Batch) account() {
	for _, s := range subjects {
		b.Add(droppedFamily, float64(b.dropped[s]), droppedLabels[s])
	}
}
