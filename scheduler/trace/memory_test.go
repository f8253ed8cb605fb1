package trace

import (
	"fmt"
	"testing"
	"time"
)

// A long trace is held in bounded memory: what has ended is forgotten, whatever names, tenants and
// request keys came.
func TestNothingStays(t *testing.T) {
	const rows = 4000
	c := replayOf(machines(2, 64_000, 1_000_000, 8)).c
	n := 0
	c.Rows = load(rows, 10*time.Second, 3, func(r *Row, x uint64) {
		n++
		r.Name, r.Tenant, r.CPU = fmt.Sprint("job-", n), fmt.Sprint("t", n), 1+n%5000 // each a request key of its own
		r.Duration = time.Duration(10+x%100) * time.Second
	})
	most, requestKeys := 0, 0
	r, err := newReplay(&c)
	if err != nil {
		t.Fatal(err)
	}
	c.Report = func(Progress) error {
		most, requestKeys = max(most, len(r.allocs)), max(requestKeys, len(r.queue.requestKeys))
		return nil
	}
	if err := r.run(); err != nil {
		t.Fatal(err)
	}
	if most == 0 || most > 16 || requestKeys > 32 {
		t.Errorf("%d allocations and %d shapes were held at a time", most, requestKeys)
	}
	if len(r.allocs) > 0 || len(r.queue.requestKeys) > 0 || len(r.ends) > 0 || len(r.queue.waiting) > 0 || r.ledger.Used != (Amounts{}) {
		t.Errorf("after the end: %d allocations, %d shapes, %d ends, %d that wait, %+v", len(r.allocs), len(r.queue.requestKeys), len(r.ends), len(r.queue.waiting), r.ledger.Used)
	}
	f := r.figures()
	if len(f.ByTenant) != maxTenants+1 || len(f.OverTime) > samplesMost || len(r.census.list) > maxSeen || f.Counts.Completed != rows {
		t.Errorf("%d tenants, %d samples, %d shapes seen, %+v", len(f.ByTenant), len(f.OverTime), len(r.census.list), f.Counts)
	}
}

// Samples become longer, never more, and their sums stay.
func TestSeries(t *testing.T) {
	s := newSeries(0)
	now := levels{gpu: 2}
	frag := func() float64 { return 7 }
	end := int64(0)
	for i := range int64(3000) {
		end += 59e9 + i
		s.advance(end, now, frag)
	}
	s.arrived()
	list := s.samples(Amounts{GPUMilli: 4}, 1)
	if len(list) > samplesMost || len(list) < samplesMost/2-1 || s.stretch != firstStretch*8 {
		t.Errorf("%d samples of %d s", len(list), s.stretch/1e9)
	}
	for i, x := range list {
		if x.GPU != 0.5 || x.From != float64(i)*float64(s.stretch)/1e9 {
			t.Fatalf("sample %d: %+v", i, x)
		}
	}
	if got := s.until.parts(Amounts{GPUMilli: 4}, float64(end)); got.GPU != 0.5 {
		t.Errorf("%+v", got)
	}
	// A jump over ages makes no more of them.
	s.advance(end+int64(MaxTime), now, frag)
	if list = s.samples(Amounts{GPUMilli: 4}, 1); len(list) > samplesMost+1 {
		t.Errorf("%d samples after a jump", len(list))
	}
}

func TestQuantiles(t *testing.T) {
	w := newWaits()
	for i := range 10_000 {
		w.add(int64(i) * 1e9)
	}
	f := w.figures("x")
	near := func(got, want float64) {
		t.Helper()
		if got < want*0.99 || got > want*1.0101 {
			t.Errorf("%v, want %v within 1 %%", got, want)
		}
	}
	near(f.P50, 4999)
	near(f.P95, 9499)
	near(f.P99, 9899)
	if f.Mean != 4999.5 || f.Max != 9999 || f.Jobs != 10_000 {
		t.Errorf("%+v", f)
	}
	sum := int64(0)
	for _, n := range f.Spread {
		sum += n
	}
	if f.Spread[0] != 1 || f.Spread[1] != 1 || f.Spread[2] != 9 || sum != 10_000 {
		t.Errorf("spread %v", f.Spread)
	}
}

// BenchmarkStream is a row of a long trace: arrival, decision, end.
func BenchmarkStream(b *testing.B) {
	c := replayOf(machines(60, 128_000, 1_000_000, 8)).c
	c.Rows = load(b.N, 2*time.Second, 5, func(r *Row, n uint64) {
		r.CPU, r.MemoryMB, r.GPUs, r.Duration = 1000, 4096, int(n%5), time.Duration(60+n%800)*time.Second // small
	})
	b.ReportAllocs()
	b.ResetTimer()
	if _, _, err := Run(c); err != nil {
		b.Fatal(err)
	}
}
