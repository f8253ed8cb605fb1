package stats

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadish/nomadish/client/driver"
	"github.com/nomadish/nomadish/structs"
)

// burner is a task that uses a fixed part of a core.
type burner struct {
	driver.Handle
	begun time.Time
	user  float64
	err   error
}

func (b *burner) Stats(context.Context) (driver.Stats, error) {
	now := time.Now()
	return driver.Stats{
		Timestamp: now, Pids: []int{42}, CPUUser: time.Duration(float64(now.Sub(b.begun)) * b.user), MemoryRSS: 1 << 20,
	}, b.err
}

func TestAllocSums(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Sampler{MHzPerCore: 2000}
		handles := map[string]driver.Handle{
			"a": &burner{begun: time.Now(), user: 0.5}, "b": &burner{begun: time.Now(), user: 1.5},
			"gone": &burner{err: driver.ErrTaskNotRunning},
		}
		for range 2 { // the first measures a window, the second since the first
			u, err := s.Alloc(t.Context(), handles)
			if err != nil {
				t.Fatal(err)
			}
			c := u.ResourceUsage.CpuStats
			if len(u.Tasks) != 2 || c.Percent < 199 || c.Percent > 201 || c.TotalTicks < 3990 || c.TotalTicks > 4010 || u.ResourceUsage.MemoryStats.RSS != 2<<20 {
				t.Errorf("%d tasks, %v %%, %v MHz, %d bytes", len(u.Tasks), c.Percent, c.TotalTicks, u.ResourceUsage.MemoryStats.RSS)
			}
			time.Sleep(time.Second)
		}
		handles["bad"] = &burner{err: errors.New("broken")}
		if _, err := s.Alloc(t.Context(), handles); structs.CodeOf(err) != structs.CodeInternal {
			t.Errorf("error %v", err)
		}
	})
}

func TestProcessorsOfProcStat(t *testing.T) {
	got := readProcessors([]byte("cpu  10 20 30 40 50 60 70 80 90 100\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu11 10 0 0 0 0 0 0\nintr " +
		strings.Repeat("1 ", 100_000) + "\ncpu12 1 2\nctxt 5\n"))
	want := []processor{{"cpu0", 3, 16, 9}, {"cpu11", 10, 0, 0}}
	if !slices.Equal(got, want) {
		t.Errorf("have %v, want %v", got, want)
	}
	if all, err := processors(); err != nil || len(all) == 0 || all[0].name != "cpu0" || all[0].user+all[0].system+all[0].idle == 0 {
		t.Errorf("this machine's: %v, %v", all, err)
	}
}

func TestHost(t *testing.T) {
	h := &Host{AllocDir: t.TempDir(), TotalMHz: 4000}
	for range 2 {
		s, err := h.Stats(t.Context(), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if s.Memory.Total == 0 || len(s.CPU) == 0 || s.AllocDirStats.Size == 0 || s.AllocDirStats.Device == "" {
			t.Errorf("%+v", s)
		}
		for _, c := range s.CPU {
			if c.TotalPercent < 0 || c.TotalPercent > 100.001 {
				t.Errorf("core %s at %v %%", c.CPU, c.TotalPercent)
			}
		}
	}
}
