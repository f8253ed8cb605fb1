package view

import (
	"fmt"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

// TestSearchFindsNodePools: by the start of their names, those that are built in too.
func TestSearchFindsNodePools(t *testing.T) {
	s := newSite(t)
	for _, name := range []string{"gpu", "dev"} {
		entry := &structs.NodePoolUpsertEntry{Pools: []*structs.NodePool{{Name: name}}}
		s.Put(entry)
	}
	found, err := s.search(t.Context(), &structs.SearchRequest{Prefix: "d", Context: "node_pools"})
	if err != nil || fmt.Sprint(found.Matches["node_pools"]) != "[default dev]" {
		t.Errorf("search: %+v %v", found, err)
	}
}
