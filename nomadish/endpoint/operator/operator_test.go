package operator

import (
	"testing"

	"github.com/nomadish/nomadish/nomadish/endpoint/endpointtest"
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

// older is a cluster with a server that does not know projects.
type older struct{ endpointtest.Alone }

func (older) Readable(structs.LogType) error {
	return structs.Errorf(structs.CodeUnsupported, "not all servers know it")
}

// Settings of slots that are at their defaults are stored as none; others need servers that all know them.
func TestSlotSettingsAreGated(t *testing.T) {
	s := newSite(t)
	s.Applier = s
	set := func(slots *structs.SlotSettings, absent ...string) error {
		_, err := s.schedulerSet(t.Context(), &structs.SchedulerConfigRequest{Config: structs.SchedulerConfiguration{Slots: slots}, Absent: absent})
		return err
	}
	stored := func() *structs.SlotSettings { return s.Router.Snapshot().SchedulerConfig(nil).Slots }
	none := 0
	knowing := s.Router.Cluster
	s.Router.Cluster = older{}
	if err := set((*structs.SlotSettings)(nil).Effective()); err != nil || stored() != nil {
		t.Errorf("defaults: %v, %+v", err, stored())
	}
	if err := set(&structs.SlotSettings{MaxRequeues: &none}); structs.CodeOf(err) != structs.CodeUnsupported || stored() != nil {
		t.Errorf("older servers: %v, %+v", err, stored())
	}
	s.Router.Cluster = knowing
	if err := set(&structs.SlotSettings{MaxRequeues: &none, Types: []structs.SlotType{{Name: "batch"}}}); err != nil || *stored().MaxRequeues != 0 || stored().Types != nil {
		t.Errorf("%v, %+v", err, stored())
	}
	s.Router.Cluster = older{} // what was stored before stays, and may go
	if err := set(nil, "Slots"); err != nil || *stored().MaxRequeues != 0 {
		t.Errorf("not stated: %v, %+v", err, stored())
	}
	reply, err := s.schedulerGet(t.Context(), &structs.EmptyRequest{})
	if err != nil || *reply.SchedulerConfig.Slots.MaxRequeues != 0 || len(reply.SchedulerConfig.Slots.Types) != 4 {
		t.Errorf("%v, %+v", err, reply)
	}
	if err := set(nil); err != nil || stored() != nil {
		t.Errorf("the defaults again: %v, %+v", err, stored())
	}
}
