package operator

import (
	"testing"

	"github.com/nomadish/nomadish/structs"
)

// What a change does not state stays, and defaults are shown as what they are.
func TestSchedulerConfiguration(t *testing.T) {
	s := newSite(t)
	s.Applier = s
	get := func() *structs.SchedulerConfiguration {
		t.Helper()
		reply, err := s.schedulerGet(t.Context(), &structs.EmptyRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return reply.SchedulerConfig
	}
	set := func(c structs.SchedulerConfiguration, absent ...string) {
		t.Helper()
		reply, err := s.schedulerSet(t.Context(), &structs.SchedulerConfigRequest{Config: c, Absent: absent})
		if err != nil || !reply.Updated {
			t.Fatalf("%+v %v", reply, err)
		}
	}
	if c := get(); c.Levels[0].Name != "rack" || c.Granularity["cpu"] != 500 || c.Policy != "" || c.ReservationTTL != structs.DefaultReservationTTL {
		t.Errorf("new: %+v", c)
	}
	set(structs.SchedulerConfiguration{Policy: "random", Levels: []structs.TopologyLevel{}, PreferredCells: []int{8}})
	if c := get(); c.SchedulerAlgorithm != "binpack" || c.NodeOrder() != "random" || len(c.Levels) != 0 || c.PreferredCells[0] != 8 {
		t.Errorf("set: %+v", c)
	}
	set(structs.SchedulerConfiguration{SchedulerAlgorithm: "binpack", PauseEvalBroker: true}, structs.OwnSchedulerFields()...)
	if c := get(); c.NodeOrder() != "random" || len(c.Levels) != 0 || !c.PauseEvalBroker || c.PreferredCells[0] != 8 {
		t.Errorf("a program that knows only Nomad's fields: %+v", c)
	}
	set(structs.SchedulerConfiguration{SchedulerAlgorithm: "spread"}, structs.OwnSchedulerFields()...)
	if c := get(); c.NodeOrder() != "spread" || len(c.Levels) != 0 {
		t.Errorf("another algorithm: %+v", c)
	}
	set(structs.SchedulerConfiguration{})
	if c := get(); c.NodeOrder() != "spread" || c.Levels[0].Name != "rack" || len(c.PreferredCells) != 0 {
		t.Errorf("back to the defaults: %+v", c)
	}
	_, err := s.schedulerSet(t.Context(), &structs.SchedulerConfigRequest{Config: structs.SchedulerConfiguration{Policy: "best"}})
	if structs.CodeOf(err) != structs.CodeBadRequest {
		t.Errorf("a policy that there is not: %v", err)
	}
}
