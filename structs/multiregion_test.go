package structs

import (
	"maps"
	"slices"
	"testing"
)

func TestInRegion(t *testing.T) {
	t.Parallel()
	job := &Job{
		ID: "j", NodePool: "default", Meta: map[string]string{"a": "1", "b": "1"},
		TaskGroups: []*TaskGroup{{Name: "open"}, {Name: "own", Count: 3}},
		Multiregion: &Multiregion{Regions: []*MultiregionRegion{
			{Name: "west", Count: 2, Datacenters: []string{"w1"}, NodePool: "gpu", Meta: map[string]string{"b": "2", "c": "2"}},
			{Name: "east", Count: 1},
		}},
	}
	f := func(region string, counts []int, dcs []string, pool string, meta map[string]string) {
		t.Helper()
		got := job.InRegion(region)
		var n []int
		for _, g := range got.TaskGroups {
			n = append(n, g.Count)
		}
		if got.Region != region || !slices.Equal(n, counts) || !slices.Equal(got.Datacenters, dcs) || got.NodePool != pool || !maps.Equal(got.Meta, meta) {
			t.Errorf("%s: region %q, counts %v, datacenters %v, pool %q, meta %v", region, got.Region, n, got.Datacenters, got.NodePool, got.Meta)
		}
		if again := got.InRegion(region); again.SpecChanged(got) {
			t.Errorf("%s: not the same when it is made again", region)
		}
	}
	f("west", []int{2, 3}, []string{"w1"}, "gpu", map[string]string{"a": "1", "b": "2", "c": "2"})
	f("east", []int{1, 3}, []string{DefaultDatacenter}, "default", map[string]string{"a": "1", "b": "1"})
	if job.InRegion("mars") != nil || (&Job{}).InRegion("west") != nil {
		t.Error("a job in a region that it does not name")
	}
	if job.TaskGroups[0].Count != 0 || job.Meta["b"] != "1" || len(job.Datacenters) > 0 {
		t.Errorf("the job itself was changed: %+v", job)
	}
}
