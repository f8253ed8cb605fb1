package job

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

// TestJobOfUnknownNodePool: such a job would wait for ever.
func TestJobOfUnknownNodePool(t *testing.T) {
	s := newSite(t)
	s.Applier, s.NewID = s, func() string { return fmt.Sprint("id-", s.Index()) }
	register := func(pool string) error {
		j := &structs.Job{ID: "web", NodePool: pool, Type: structs.JobTypeBatch, TaskGroups: []*structs.TaskGroup{{Name: "g", Count: 1, Tasks: []*structs.Task{{
			Name: "t", Driver: "mock_driver",
		}}}}}
		_, err := s.register(t.Context(), &structs.JobRegisterRequest{Job: j, WriteRequest: structs.WriteRequest{Namespace: "default"}})
		return err
	}
	err := register("gpu")
	if structs.CodeOf(err) != structs.CodeBadRequest || !strings.Contains(fmt.Sprint(err), `job "web": node_pool: node pool "gpu" does not exist (`) {
		t.Errorf("unknown: %v", err)
	}
	for _, pool := range []string{"", "default", "all"} {
		if err := register(pool); err != nil {
			t.Errorf("%q: %v", pool, err)
		}
	}
	s.Put(&structs.NodeRegisterEntry{Node: &structs.Node{
		ID: "n", SecretID: "s", Name: "n", NodePool: "gpu", Status: structs.NodeStatusReady, NodeResources: &structs.NodeResources{},
	}, EvalSeed: "x"}) // by a version that kept no pools
	if err := register("gpu"); err != nil {
		t.Errorf("a node is in it: %v", err)
	}
	valid, err := s.validate(t.Context(), &structs.JobRegisterRequest{Job: &structs.Job{ID: "x", NodePool: "none", TaskGroups: []*structs.TaskGroup{{
		Name: "g", Tasks: []*structs.Task{{Name: "t", Driver: "d"}},
	}}}, WriteRequest: structs.WriteRequest{Namespace: "default"}})
	if err != nil || !strings.Contains(valid.Error, `node pool "none" does not exist`) {
		t.Errorf("validated: %+v %v", valid, err)
	}
}
