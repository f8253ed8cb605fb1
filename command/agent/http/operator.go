package httpapi

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

func statusLeader(r *request) (any, error) {
	var reply structs.StringReply
	if err := r.read(wire.MethodLeader, &structs.EmptyRequest{QueryOptions: r.opts}, &reply); err != nil {
		return nil, err
	}
	return reply.Value, nil
}

func statusPeers(r *request) (any, error) { return r.strings(wire.MethodPeers) }

func regionList(r *request) (any, error) { return r.strings(wire.MethodRegions) }

func (r *request) strings(method string) (any, error) {
	var reply structs.StringsReply
	if err := r.read(method, &structs.EmptyRequest{QueryOptions: r.opts}, &reply); err != nil {
		return nil, err
	}
	return list(reply.Values), nil
}

// signingKeys answers the keys that the servers sign with, as RFC 7517 writes them.
func signingKeys(r *request) (any, error) {
	var reply structs.SigningKeysReply
	if err := r.read(wire.MethodSigningKeys, &structs.EmptyRequest{QueryOptions: r.opts}, &reply); err != nil {
		return nil, err
	}
	return structs.JSONWebKeySet{Keys: list(reply.Keys)}, nil
}

func schedulerConfigGet(r *request) (any, error) {
	var reply structs.SchedulerConfigReply
	if err := r.read(wire.MethodSchedulerGet, &structs.EmptyRequest{QueryOptions: r.opts}, &reply); err != nil {
		return nil, err
	}
	return &reply, nil
}

func schedulerConfigSet(r *request) (any, error) {
	args := structs.SchedulerConfigRequest{WriteRequest: r.write()}
	var stated json.RawMessage
	err := r.decode(&stated)
	r.s.takes(r, &args.Config)
	if err == nil {
		args.Config, args.Absent, err = schedulerConfig(stated)
	}
	if err != nil {
		return nil, err
	}
	cas, index, err := r.check()
	if err != nil {
		return nil, err
	}
	if cas {
		args.CAS, args.Config.ModifyIndex = true, index
	}
	return changed[structs.SchedulerSetReply](r, wire.MethodSchedulerSet, &args)
}

// schedulerConfig reads a configuration of the scheduler, with the fields of ours that it does not state.
func schedulerConfig(stated json.RawMessage) (config structs.SchedulerConfiguration, missing []string, err error) {
	standard := structs.DefaultSchedulerConfiguration() // of Nomad's fields: what is not stated is as in a new cluster
	config.NodeLimitForFeasibilityChecks = standard.NodeLimitForFeasibilityChecks
	config.PreemptionConfig = standard.PreemptionConfig
	if err := decodeJSON(stated, &config); err != nil {
		return config, nil, err
	}
	if missing, err = absent(stated, structs.OwnSchedulerFields()); err != nil {
		return config, nil, err
	}
	if config.SchedulerAlgorithm == "" {
		config.SchedulerAlgorithm = structs.AlgorithmBinpack
		config.SetNodeOrder(config.Policy)
	}
	return config, missing, config.Validate()
}

// absent returns those of names that a JSON object does not have, whatever their case.
func absent(object []byte, names []string) ([]string, error) {
	var fields map[string]json.RawMessage
	if err := decodeJSON(object, &fields); err != nil {
		return nil, err
	}
	var out []string
	for _, name := range names {
		has := func(field string) bool { return strings.EqualFold(field, name) }
		if !slices.ContainsFunc(slices.Collect(maps.Keys(fields)), has) {
			out = append(out, name)
		}
	}
	return out, nil
}

func raftConfig(r *request) (any, error) {
	var reply structs.RaftConfigurationReply
	if err := r.change(wire.MethodRaftConfig, &structs.EmptyRequest{QueryOptions: r.opts}, &reply, &reply.Index); err != nil {
		return nil, err
	}
	r.setContact(reply.Meta)
	reply.Servers = list(reply.Servers)
	return &reply, nil
}

// raftPeer reads which server is meant: by ID or by address, not both.
func (r *request) raftPeer() (*structs.RaftPeerRequest, error) {
	id, address := r.query.Get("id"), r.query.Get("address")
	switch {
	case id == "" && address == "":
		return nil, badRequest("id or address: missing; name the server")
	case id != "" && address != "":
		return nil, badRequest("id and address cannot both be stated")
	}
	return &structs.RaftPeerRequest{ID: id, Address: address, WriteRequest: r.write()}, nil
}

func raftRemove(r *request) (any, error) { return r.raftChange(wire.MethodRaftRemove) }

func raftTransfer(r *request) (any, error) { return r.raftChange(wire.MethodRaftTransfer) }

func (r *request) raftChange(method string) (any, error) {
	args, err := r.raftPeer()
	if err != nil {
		return nil, err
	}
	return written(r, method, args)
}

func systemGC(r *request) (any, error) {
	return written(r, wire.MethodSystemGC, &structs.GCRequest{WriteRequest: r.write()})
}

func systemReconcile(r *request) (any, error) {
	var reply structs.ReconcileReply
	if err := r.change(wire.MethodReconcile, &structs.GCRequest{WriteRequest: r.write()}, &reply, &reply.Index); err != nil {
		return nil, err
	}
	reply.Differences = list(reply.Differences)
	return &reply, nil
}

func historyList(r *request) (any, error) {
	return readList(r, wire.MethodHistoryList, &structs.ListRequest{QueryOptions: r.opts}, func(a *structs.HistoryReply) []*structs.HistoryRecord { return a.Records })
}
