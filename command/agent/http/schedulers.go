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
		EnabledSchedulers: append(slices.DeleteFunc(slices.Clone(self.EnabledSchedulers), func(kind string) bool { return kind == core }), core),
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

// maxSchedulers bounds the workers of a server, as its configuration does.
const maxSchedulers = 1024

// agentSetSchedulers changes the workers of this agent's server until the agent is started again. What no server could have is
// refused with the one text that Nomad has for it.
func agentSetSchedulers(r *request) (any, error) {
	pool, err := r.schedulers()
	if err != nil {
		return nil, err
	}
	var want schedulerPool
	if err := r.decode(&want); err != nil {
		return nil, err
	}
	types := []string{structs.JobTypeService, structs.JobTypeBatch, structs.JobTypeSystem, structs.JobTypeSysBatch}
	unknown := func(kind string) bool { return kind != core && !slices.Contains(types, kind) }
	if want.NumSchedulers < 0 || want.NumSchedulers > maxSchedulers || !slices.Contains(want.EnabledSchedulers, core) ||
		slices.ContainsFunc(want.EnabledSchedulers, unknown) {
		return nil, &statusError{http.StatusBadRequest, "Invalid request"}
	}
	if r.s.cfg.SetSchedulers == nil {
		return nil, unsupported("changing the schedulers of this agent")
	}
	enabled := slices.DeleteFunc(types, func(kind string) bool { return !slices.Contains(want.EnabledSchedulers, kind) })
	if err := r.s.cfg.SetSchedulers(want.NumSchedulers, enabled); err != nil {
		return nil, err
	}
	return schedulerPool{ServerID: pool.ServerID, NumSchedulers: want.NumSchedulers, EnabledSchedulers: append(enabled, core)}, nil
}
