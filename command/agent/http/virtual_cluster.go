package httpapi

import (
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

func virtualClusterList(r *request) (any, error) {
	var reply structs.VirtualClusterListReply
	if err := r.read(wire.MethodVirtualClusterList, &structs.ListRequest{QueryOptions: r.opts}, &reply); err != nil {
		return nil, err
	}
	for _, vc := range reply.VirtualClusters {
		vc.Cells = list(vc.Cells)
		vc.Windows = list(vc.Windows)
	}
	return list(reply.VirtualClusters), nil
}

func virtualClusterGet(r *request) (any, error) {
	var reply structs.VirtualClusterReply
	if err := r.read(wire.MethodVirtualClusterGet, &structs.IDRequest{ID: r.id(), QueryOptions: r.opts}, &reply); err != nil {
		return nil, err
	}
	vc := reply.VirtualCluster
	if vc == nil {
		return nil, notFound("virtual cluster")
	}
	vc.Cells = list(vc.Cells)
	vc.Windows = list(vc.Windows)
	return vc, nil
}

// virtualClusterUpsert gives the namespace of the path the cells of the body, in place of those that it has.
func virtualClusterUpsert(r *request) (any, error) {
	args := structs.VirtualClusterUpsertRequest{VirtualCluster: &structs.VirtualCluster{}, WriteRequest: r.write()}
	if err := r.decodeKnown(args.VirtualCluster, structs.VirtualClusterStatus{}); err != nil {
		return nil, err
	}
	err := r.setName(&args.VirtualCluster.Name)
	if err != nil {
		return nil, err
	}
	if args.WhenFree, err = r.bool("when_free", false); err != nil {
		return nil, err
	}
	if args.CAS, args.CheckIndex, err = r.check(); err != nil {
		return nil, err
	}
	return written(r, wire.MethodVirtualClusterUpsert, &args)
}

func virtualClusterDelete(r *request) (any, error) {
	return written(r, wire.MethodVirtualClusterDelete, &structs.VirtualClusterDeleteRequest{Name: r.id(), WriteRequest: r.write()})
}
