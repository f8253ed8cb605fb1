package fsm

import (
	"fmt"
	"reflect"
	"time"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/structs"
)

// fill draws a value of any type of ours, so that no field can be forgotten by a
// test. It avoids what the wire does not tell apart: nil from empty.
func fill(t *rapid.T, v reflect.Value, depth int) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(rapid.Int64Range(1, 4e9).Draw(t, "sec"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC()))
		return
	case map[string]any:
		v.Set(reflect.ValueOf(map[string]any{"image": rapid.String().Draw(t, "any"), "n": int64(-1), "on": true, "list": []any{"x"}}))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if depth > 0 && rapid.Bool().Draw(t, "set") {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem(), depth-1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(t, v.Field(i), depth)
			}
		}
	case reflect.Slice:
		if depth > 0 && v.Type().Elem().Kind() != reflect.Interface && rapid.Bool().Draw(t, "set") {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(t, v.Index(0), depth-1)
		}
	case reflect.Map:
		if depth > 0 && rapid.Bool().Draw(t, "set") {
			key, val := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(t, key, depth-1)
			fill(t, val, depth-1)
			v.Set(reflect.MakeMap(v.Type()))
			v.SetMapIndex(key, val)
		}
	case reflect.String:
		v.SetString(rapid.StringN(0, 8, 16).Draw(t, "string"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(rapid.Int64Range(-100, 100).Draw(t, "int"))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(rapid.Uint64Range(0, 200).Draw(t, "uint"))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(rapid.IntRange(-9, 9).Draw(t, "float")) / 4)
	}
}

// script draws log entries over a few nodes, jobs, evaluations and seeds, so that
// they meet each other.
type script struct {
	t    *rapid.T
	time int64
}

func (s *script) pick(what string, n int) int { return rapid.IntRange(0, n-1).Draw(s.t, what) }
func (s *script) flip() bool                  { return rapid.Bool().Draw(s.t, "flip") }
func (s *script) node() string                { return fmt.Sprintf("node-%d", s.pick("node", 3)) }
func (s *script) pool() string                { return s.one("gpu", "cpu", structs.NodePoolDefault) }
func (s *script) job() string                 { return fmt.Sprintf("job-%d", s.pick("job", 3)) }
func (s *script) evalID() string              { return fmt.Sprintf("eval-%d", s.pick("eval", 8)) }
func (s *script) seed() string                { return fmt.Sprintf("seed-%d", s.pick("seed", 4)) }
func (s *script) alloc() string               { return structs.DeriveID(s.seed(), uint64(s.pick("ordinal", 3))) }
func (s *script) one(of ...string) string     { return rapid.SampledFrom(of).Draw(s.t, "one") }

func (s *script) eval() *structs.Evaluation {
	if s.pick("no eval", 4) == 0 {
		return nil
	}
	e := &structs.Evaluation{
		ID: s.evalID(), Namespace: "default", JobID: s.job(), Type: structs.JobTypeService, Priority: 50,
		Status:      s.one(structs.EvalStatusPending, structs.EvalStatusBlocked, structs.EvalStatusComplete, structs.EvalStatusFailed),
		TriggeredBy: structs.EvalTriggerJobRegister,
	}
	if s.flip() {
		e.QueuedAllocations = map[string]int{"web": s.pick("queued", 5)}
	}
	if s.flip() {
		e.FailedTGAllocs = map[string]*structs.AllocMetric{"web": {NodesEvaluated: 3}}
	}
	return e
}

func (s *script) evals() []*structs.Evaluation {
	if e := s.eval(); e != nil {
		return []*structs.Evaluation{e}
	}
	return nil
}

func (s *script) batch() *structs.PlacementBatch {
	b := &structs.PlacementBatch{
		Namespace: "default", JobID: s.job(), JobVersion: uint64(s.pick("version", 3)), Group: s.one("web", "db"),
		EvalID: s.evalID(), Seed: s.seed(), CreateTime: s.time, Nodes: []structs.PlacedNode{{ID: s.node()}, {ID: s.node()}},
		Resources: &structs.AllocatedResources{Tasks: map[string]*structs.AllocatedTaskResources{
			"t": {Cpu: structs.AllocatedCpuResources{CpuShares: 100}, Memory: structs.AllocatedMemoryResources{MemoryMB: 64}},
		}},
	}
	for i := range s.pick("instances", 3) {
		in := structs.Instance{Ordinal: uint32(i), Index: i, Node: s.pick("on", 2)}
		if s.flip() {
			in.Ports = []structs.PortMapping{{Label: "http", Value: 20000 + s.pick("port", 100)}}
		}
		if s.flip() {
			in.PreviousAllocation = s.alloc()
		}
		b.Instances = append(b.Instances, in)
	}
	return b
}

func (s *script) plan() *structs.PlanCommit {
	p := &structs.JudgedPlan{EvalID: s.evalID(), Time: s.time, Place: []*structs.PlacementBatch{s.batch()}, Evals: s.evals()}
	if s.flip() {
		p.Stop = append(p.Stop, &structs.AllocStop{
			AllocID: s.alloc(), ClientStatus: s.one("", "", structs.AllocClientLost, structs.AllocClientUnknown), KeepRunning: s.pick("keep", 4) == 0,
			DesiredStatus: s.one(structs.AllocDesiredStop, structs.AllocDesiredEvict, structs.AllocDesiredSuspend),
			Reclaim:       s.one("", structs.ReclaimRequeue, structs.ReclaimSuspend),
		})
	}
	if s.flip() {
		p.Update = append(p.Update, &structs.AllocInPlace{AllocID: s.alloc(), JobVersion: uint64(s.pick("to", 3)), EvalID: s.evalID(), Resume: s.flip()})
	}
	for range s.pick("asks", 3) {
		p.Requests = append(p.Requests, &structs.RequestUpdate{
			Namespace: "default", JobID: s.job(), Group: s.one("web", "db"), Missing: s.pick("missing", 3), EvalID: s.evalID(),
			Since: s.time - int64(s.pick("waited", 100))*1e9,
		})
	}
	return &structs.PlanCommit{Plans: []*structs.JudgedPlan{p}}
}

func (s *script) registered() *structs.Job {
	groups := []*structs.TaskGroup{{Name: "web", Count: s.pick("count", 3), Tasks: []*structs.Task{{Name: "t", User: "ann"}}}}
	if s.flip() {
		groups = append(groups, &structs.TaskGroup{Name: "db", Count: 1})
	}
	return &structs.Job{
		Namespace: "default", ID: s.job(), Type: s.one(structs.JobTypeService, structs.JobTypeBatch, structs.JobTypeSystem),
		Priority: 50, TaskGroups: groups,
	}
}

// workflowPlan draws a plan that starts a stage of a workflow, or renews its reservation.
func (s *script) workflowPlan(t structs.LogType) any {
	c := s.plan()
	if t == structs.LogWorkflowStart {
		c.Plans[0].Advance = s.workflow(structs.LogWorkflowAdvance).(*structs.WorkflowAdvanceEntry)
		if s.flip() {
			c.Plans[0].Place[0].JobID = structs.WorkflowJobID("chip", 1, "j0")
		}
		return c
	}
	c.Plans[0].Workflow = &structs.WorkflowReservation{Namespace: "default", ID: "chip", Run: 1, Posted: true, Parts: []structs.WorkflowPart{{NodeID: s.node(), CPU: 100}}}
	if s.flip() {
		c.Plans[0].Workflow.Keeps = []structs.WorkflowPart{{NodeID: s.node(), CPU: 200}}
	}
	return c
}

// entry draws the next log entry.
func (s *script) entry() (structs.LogType, any) {
	s.time += 1e9
	seed := fmt.Sprintf("at-%d", s.time)
	node := &structs.Node{
		ID: "node-0", Status: structs.NodeStatusReady, NodeResources: &structs.NodeResources{
			Cpu: structs.NodeCpuResources{CpuShares: 4000, TotalCpuCores: 4}, Memory: structs.NodeMemoryResources{MemoryMB: 8000},
			Disk: structs.NodeDiskResources{DiskMB: 1000}, MinDynamicPort: 20000, MaxDynamicPort: 32000,
		},
	}
	switch t := rapid.SampledFrom(append(structs.LogTypes(), structs.LogPlanApply, structs.LogPlanApply, structs.LogAllocClient)).Draw(s.t, "type"); t {
	case structs.LogNodeRegister:
		node.ID = s.node()
		return t, &structs.NodeRegisterEntry{Node: node, Time: s.time, EvalSeed: seed}
	case structs.LogNodeDeregister:
		return t, &structs.NodeDeregisterEntry{NodeIDs: []string{s.node()}, Time: s.time, EvalSeed: seed}
	case structs.LogNodeStatus:
		return t, &structs.NodeStatusEntry{
			NodeIDs: []string{s.node(), s.node()}, Status: s.one(structs.NodeStatusReady, structs.NodeStatusDown), Time: s.time, EvalSeed: seed,
			Event: &structs.NodeEvent{Message: "moved"},
		}
	case structs.LogNodeEligibility:
		return t, &structs.NodeEligibilityEntry{NodeID: s.node(), Eligibility: s.one(structs.NodeEligible, structs.NodeIneligible), Time: s.time, EvalSeed: seed}
	case structs.LogNodeDrain:
		e := &structs.NodeDrainEntry{NodeID: s.node(), Time: s.time, EvalSeed: seed, MarkEligible: s.flip()}
		if s.flip() {
			e.Strategy = &structs.DrainStrategy{StartedAt: time.Unix(0, s.time).UTC()}
		}
		return t, e
	case structs.LogNodeEvents:
		return t, &structs.NodeEventsEntry{Events: map[string][]*structs.NodeEvent{s.node(): {{Message: "x"}}, s.node(): {{Message: "y"}}}}
	case structs.LogJobRegister:
		return t, &structs.JobRegisterEntry{Job: s.registered(), Eval: s.eval(), Time: s.time, Submission: &structs.JobSubmission{Source: "job {}"}}
	case structs.LogJobDeregister:
		return t, &structs.JobDeregisterEntry{Namespace: "default", JobID: s.job(), Purge: s.flip(), NoShutdownDelay: s.flip(), Eval: s.eval(), Time: s.time}
	case structs.LogEvalUpsert:
		return t, &structs.EvalUpsertEntry{Evals: s.evals(), Time: s.time}
	case structs.LogPlanApply:
		return t, s.plan()
	case structs.LogAllocClient:
		return t, &structs.AllocClientEntry{Time: s.time, Evals: s.evals(), Updates: []*structs.AllocClientUpdate{{
			ID: s.alloc(), ModifyTime: s.time, ClientStatus: s.one(structs.AllocClientPending, structs.AllocClientRunning,
				structs.AllocClientComplete, structs.AllocClientFailed, structs.AllocClientUnknown, structs.AllocClientSuspended),
			TaskStates: map[string]*structs.TaskState{"t": {State: "dead", Events: []*structs.TaskEvent{{Type: structs.TaskTerminated, ExitCode: 3}}}},
		}}}
	case structs.LogAllocTransition:
		yes := true
		return t, &structs.AllocTransitionEntry{Transitions: map[string]*structs.DesiredTransition{s.alloc(): {Migrate: &yes}}, Time: s.time, Evals: s.evals()}
	case structs.LogSchedulerConfig:
		return t, &structs.SchedulerConfigEntry{Config: structs.DefaultSchedulerConfiguration(), CAS: s.flip(), Time: s.time}
	case structs.LogAutopilotConfig:
		e := &structs.AutopilotConfigEntry{Config: structs.DefaultAutopilotConfiguration(), CAS: s.flip(), Time: s.time}
		e.Config.MinQuorum = uint(s.pick("quorum", 4)) // small
		return t, e
	case structs.LogClusterMeta:
		return t, &structs.ClusterMetaEntry{ClusterID: s.seed(), Time: s.time}
	case structs.LogJobStability:
		return t, &structs.JobStabilityEntry{Namespace: "default", JobID: s.job(), Version: uint64(s.pick("version", 3)), Stable: s.flip(), Time: s.time} // small
	case structs.LogSigningKey:
		return t, &structs.SigningKeyEntry{Key: structs.SigningKey{KeyID: s.seed(), PrivateKey: []byte{1}}, First: s.flip(), Time: s.time}
	case structs.LogNodePoolUpsert:
		e := &structs.NodePoolUpsertEntry{Pools: []*structs.NodePool{{Name: s.pool()}, {Name: s.pool(), Description: "of a test"}}, IfAbsent: s.flip(), Time: s.time}
		if s.flip() {
			e.Pools[0].Meta = map[string]string{"a": "b", "c": "d"}
		}
		return t, e
	case structs.LogNodePoolDelete:
		return t, &structs.NodePoolDeleteEntry{Name: s.pool(), Time: s.time}
	case structs.LogNamespaceUpsert:
		e := &structs.NamespaceUpsertEntry{Namespace: &structs.Namespace{Name: s.pool()}, Time: s.time}
		if s.flip() {
			e.Namespace.Meta = map[string]string{"a": "b", "c": "d"}
			e.Namespace.Capabilities = &structs.NamespaceCapabilities{EnabledTaskDrivers: []string{"exec", "mock_driver"}}
		}
		return t, e
	case structs.LogNamespaceDelete:
		return t, &structs.NamespaceDeleteEntry{Name: s.pool(), Time: s.time}
	case structs.LogVirtualClusterUpsert, structs.LogVirtualClusterDelete, structs.LogClaimsTime, structs.LogVirtualClusterShift,
		structs.LogVirtualClusterPoints, structs.LogExchangePut, structs.LogExchangeWithdraw:
		return t, s.claim(t)
	case structs.LogProjectUpsert, structs.LogProjectDelete, structs.LogProjectCalendar, structs.LogFlowUpsert, structs.LogFlowDelete:
		return t, s.project(t)
	case structs.LogLicenseUpsert:
		return t, &structs.LicenseUpsertEntry{
			License: &structs.License{Name: s.one("vcs", "spice"), Count: int64(s.pick("count", 4))}, CAS: s.pick("cas", 4) == 0, Time: s.time,
		}
	case structs.LogLicenseDelete:
		return t, &structs.LicenseDeleteEntry{Name: s.one("vcs", "spice"), Time: s.time}
	case structs.LogWorkflowStart, structs.LogWorkflowRenew:
		return t, s.workflowPlan(t)
	case structs.LogWorkflowRun, structs.LogWorkflowAdvance, structs.LogWorkflowState, structs.LogWorkflowDelete:
		return t, s.workflow(t)
	case structs.LogCollect:
		e := &structs.CollectEntry{
			Evals: []string{s.evalID(), s.evalID()}, Allocs: []string{s.alloc(), s.alloc()}, Nodes: []string{s.node()},
			Jobs: []structs.NamespacedID{{Namespace: "default", ID: s.job()}}, Time: s.time,
		}
		if s.flip() {
			e.HistoryBefore = s.time - 5e9
		}
		return t, e
	case structs.LogJobScale:
		count := int64(s.pick("scale", 4))
		return t, &structs.JobScaleEntry{Namespace: "default", JobID: s.job(), Group: "web", Count: &count, Eval: s.eval(), Time: s.time, Event: &structs.ScalingEvent{Time: s.time}}
	default:
		return structs.LogReconcile, &structs.ReconcileEntry{Time: s.time}
	}
}

// claim returns a random entry about what namespaces own.
func (s *script) claim(t structs.LogType) any {
	switch t {
	case structs.LogVirtualClusterUpsert:
		e := &structs.VirtualClusterUpsertEntry{
			VirtualCluster: &structs.VirtualCluster{Name: "default", Cells: []*structs.CellQuota{{Level: "node", Count: s.pick("cells", 3)}}}, Time: s.time, EvalSeed: s.seed(),
			WhenFree: s.flip(),
		}
		if s.flip() {
			e.VirtualCluster.Cells = nil
		}
		return e
	case structs.LogVirtualClusterDelete:
		return &structs.VirtualClusterDeleteEntry{Name: "default", Time: s.time, EvalSeed: s.seed()}
	case structs.LogClaimsTime:
		return &structs.ClaimsTimeEntry{Now: s.time + int64(s.pick("later", 3))*1e9, EvalSeed: s.seed()}
	case structs.LogVirtualClusterShift:
		from := time.Unix(0, s.time).Add(time.Minute)
		return &structs.VirtualClusterShiftEntry{Name: "default", Shift: structs.CellShift{
			Cells: structs.CellQuota{Level: "node", Count: 1}, From: from, Until: from.Add(time.Minute), To: from.Add(time.Hour), UntilTo: from.Add(61 * time.Minute),
		}, Time: s.time, EvalSeed: s.seed()}
	case structs.LogVirtualClusterPoints:
		return &structs.VirtualClusterPointsEntry{Name: "default", Points: int64(s.pick("points", 5)) - 1, Time: s.time}
	case structs.LogExchangePut:
		return &structs.ExchangePutEntry{Exchange: structs.Exchange{
			ID: s.seed(), Owner: "default", Bid: s.flip(), Points: 1, Cells: structs.CellQuota{Level: "node", Count: 1},
			From: time.Unix(0, s.time+1e9), Until: time.Unix(0, s.time+1e12),
		}, Time: s.time}
	case structs.LogExchangeWithdraw:
		return &structs.ExchangeWithdrawEntry{ID: s.seed(), Time: s.time}
	}
	return nil
}

// workflow returns a random entry about workflows.
func (s *script) workflow(t structs.LogType) any {
	switch t {
	case structs.LogWorkflowRun:
		w := &structs.Workflow{ID: "chip", Stages: []*structs.WorkflowStage{{Name: "synth"}, {Name: "place"}}}
		for i, stage := range w.Stages {
			task := &structs.Task{Name: "t", Driver: "mock_driver"}
			job := &structs.Job{Type: structs.JobTypeBatch, TaskGroups: []*structs.TaskGroup{{Name: "web", Count: 1, Tasks: []*structs.Task{task}}}}
			stage.Jobs = []*structs.WorkflowJob{{Name: fmt.Sprintf("j%d", i), Retries: s.pick("retries", 2), Job: job}}
		}
		w.Canonicalize()
		return &structs.WorkflowRunEntry{Workflow: w, Time: s.time}
	case structs.LogWorkflowAdvance:
		// The workflow is the first thing of its kind, and mostly was changed by one of the last entries.
		stage := s.pick("stage", 2)
		return &structs.WorkflowAdvanceEntry{
			Namespace: "default", ID: "chip", Run: 1, CheckIndex: uint64(s.time/1e9) - uint64(s.pick("ago", 4)), State: structs.WorkflowRunning, Stage: stage,
			Stages: []structs.WorkflowStageMove{{Stage: stage, State: structs.StageStarting, Start: true}},
			Jobs:   []structs.WorkflowJobMove{{Stage: stage, State: structs.StageStarting, Register: s.flip()}}, EvalSeed: s.seed(), Time: s.time,
		}
	case structs.LogWorkflowState:
		return &structs.WorkflowStateEntry{
			Namespace: "default", ID: "chip", EvalSeed: s.seed(), Time: s.time,
			Action: s.one(structs.WorkflowActionPause, structs.WorkflowActionResume, structs.WorkflowActionCancel),
		}
	case structs.LogWorkflowDelete:
		return &structs.WorkflowDeleteEntry{Namespace: "default", ID: "chip", Time: s.time}
	}
	return nil
}

// project returns a random entry about projects.
func (s *script) project(t structs.LogType) any {
	switch t {
	case structs.LogProjectUpsert:
		p := &structs.Project{Name: s.one("chip", "board"), Users: []string{"ada"}, Steps: []string{"synthesis", "place"}}
		if s.flip() {
			p.Steps, p.Flow = nil, "asic"
		}
		return &structs.ProjectUpsertEntry{Project: p, Time: s.time}
	case structs.LogProjectDelete:
		return &structs.ProjectDeleteEntry{Name: s.one("chip", "board"), Time: s.time}
	case structs.LogProjectCalendar:
		n := s.pick("week", 3)
		from := s.time - s.time%604800e9 + int64(n)*604800e9
		return &structs.ProjectCalendarEntry{Time: s.time, By: s.one("", "lead"), Week: &structs.ProjectWeek{
			Project: s.one("chip", "board"), Week: fmt.Sprintf("1970-W%02d", n+1), From: from, To: from + 604800e9,
			Rows: []structs.CalendarRow{{Type: structs.SlotBatch, Step: s.one("", "place"), Count: s.pick("slots", 4)}},
		}}
	case structs.LogFlowUpsert:
		steps := []string{"synthesis", "place", "route"}
		return &structs.FlowUpsertEntry{Flow: &structs.Flow{Name: "asic", Steps: steps[:1+s.pick("steps", 3)]}, Time: s.time}
	case structs.LogFlowDelete:
		return &structs.FlowDeleteEntry{Name: "asic", Time: s.time}
	}
	return nil
}
