package httpapi

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/nomadish/nomadish/structs"
)

// core is what Nomad calls the part of a server that collects garbage. It is always there, and its clients expect it listed.
const core = "_core"

// schedulerInfo is one worker of this agent's server.
type schedulerInfo struct {
	ID                string   `json:"id"`
	EnabledSchedulers []string `json:"enabled_schedulers"`
	Status            string   `json:"status"`
}

// schedulerPool is how many workers this agent's server has, and what they take.
type schedulerPool struct {
	ServerID          string   `json:"server_id"`
	NumSchedulers     int      `json:"num_schedulers"`
	EnabledSchedulers []string `json:"enabled_schedulers"`
}

func (r *request) schedulers() (schedulerPool, error) {
	if err := r.onServer(); err != nil {
		return schedulerPool{}, err
	}
	self := r.s.cfg.Agent.Self()
	return schedulerPool{
		ServerID: self.Name + "." + self.Region, NumSchedulers: self.NumSchedulers,
		EnabledSchedulers: append(slices.Clone(self.EnabledSchedulers), core),
	}, nil
}

func agentSchedulers(r *request) (any, error) {
	pool, err := r.schedulers()
	if err != nil {
		return nil, err
	}
	out := struct {
		ServerID   string          `json:"server_id"`
		Schedulers []schedulerInfo `json:"schedulers"`
	}{pool.ServerID, []schedulerInfo{}}
	for i := range pool.NumSchedulers {
		out.Schedulers = append(out.Schedulers, schedulerInfo{ID: strconv.Itoa(i), EnabledSchedulers: pool.EnabledSchedulers, Status: "Started"})
	}
	return out, nil
}

func agentSchedulersConfig(r *request) (any, error) {
	pool, err := r.schedulers()
	if err != nil {
		return nil, err
	}
	return pool, nil
}

// agentSetSchedulers refuses what no server could have, with the one text that Nomad has for it. The workers are those of the
// configuration as long as the agent runs.
func agentSetSchedulers(r *request) (any, error) {
	pool, err := r.schedulers()
	if err != nil {
		return nil, err
	}
	var want schedulerPool
	if err := r.decode(&want); err != nil {
		return nil, err
	}
	unknown := func(kind string) bool {
		return kind != core && !slices.Contains([]string{structs.JobTypeService, structs.JobTypeBatch, structs.JobTypeSystem, structs.JobTypeSysBatch}, kind)
	}
	if want.NumSchedulers < 0 || !slices.Contains(want.EnabledSchedulers, core) || slices.ContainsFunc(want.EnabledSchedulers, unknown) {
		return nil, &statusError{http.StatusBadRequest, "Invalid request"}
	}
	have := slices.Sorted(slices.Values(pool.EnabledSchedulers))
	if want.NumSchedulers != pool.NumSchedulers || !slices.Equal(slices.Sorted(slices.Values(want.EnabledSchedulers)), have) {
		return nil, unsupported("changing the schedulers of a running agent (set server { num_schedulers, enabled_schedulers } and start it again)")
	}
	return pool, nil
}
