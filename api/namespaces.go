package api

import (
	"context"

	"github.com/nomadish/nomadish/structs"
)

// List lists the namespaces by name.
func (n Namespaces) List(ctx context.Context, q *Query) (namespaces []*structs.Namespace, meta Meta, err error) {
	meta, err = n.client.Get(ctx, "/v1/namespaces", q, &namespaces)
	return namespaces, meta, err
}

// Info reads a namespace.
func (n Namespaces) Info(ctx context.Context, name string, q *Query) (namespace *structs.Namespace, meta Meta, err error) {
	meta, err = n.client.Get(ctx, "/v1/namespace/"+seg(name), q, &namespace)
	return namespace, meta, err
}

// Register makes a namespace, or replaces the one of its name.
func (n Namespaces) Register(ctx context.Context, namespace *structs.Namespace) error {
	_, err := n.client.Put(ctx, "/v1/namespace", nil, namespace, nil)
	return err
}

// Delete deletes a namespace in which no job is that is not dead.
func (n Namespaces) Delete(ctx context.Context, name string) error {
	_, err := n.client.Delete(ctx, "/v1/namespace/"+seg(name), nil, nil)
	return err
}
