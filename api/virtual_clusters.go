package api

import (
	"context"
	"strconv"

	"github.com/nomadish/nomadish/structs"
)

// VirtualClusterEdit says how a virtual cluster is edited. The zero value: now or not at all, whoever edited it last.
type VirtualClusterEdit struct {
	// WhenFree accepts an edit that cannot be admitted now: it is pending until it can.
	WhenFree bool
	// CAS refuses the edit unless the virtual cluster was last changed at CheckIndex; 0: unless there is none yet.
	CAS        bool
	CheckIndex uint64
}

// List lists the virtual clusters by name, without their bound cells.
func (v VirtualClusters) List(ctx context.Context, q *Query) (clusters []*structs.VirtualClusterStatus, meta Meta, err error) {
	meta, err = v.client.Get(ctx, "/v1/virtual-clusters", q, &clusters)
	return clusters, meta, err
}

// Info reads the virtual cluster of a namespace, with its bound cells.
func (v VirtualClusters) Info(ctx context.Context, namespace string, q *Query) (cluster *structs.VirtualClusterStatus, meta Meta, err error) {
	meta, err = v.client.Get(ctx, "/v1/virtual-cluster/"+seg(namespace), q, &cluster)
	return cluster, meta, err
}

// Register gives a namespace the cells of cluster in place of those that it has. It returns the index of the edit.
func (v VirtualClusters) Register(ctx context.Context, cluster *structs.VirtualCluster, edit VirtualClusterEdit) (index uint64, err error) {
	q := &Query{}
	if edit.WhenFree {
		q = q.with("when_free", "true")
	}
	if edit.CAS {
		q = q.with("cas", strconv.FormatUint(edit.CheckIndex, 10))
	}
	meta, err := v.client.Put(ctx, "/v1/virtual-cluster/"+seg(cluster.Name), q, cluster, nil)
	return meta.Index, err
}

// Delete deletes the virtual cluster of a namespace, of which nothing may be in guaranteed use.
func (v VirtualClusters) Delete(ctx context.Context, namespace string) error {
	_, err := v.client.Delete(ctx, "/v1/virtual-cluster/"+seg(namespace), nil, nil)
	return err
}
