package httpapi

import (
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

func namespaceList(r *request) (any, error) {
	return readList(r, wire.MethodNamespaceList, &structs.ListRequest{QueryOptions: r.opts}, func(a *structs.NamespaceListReply) []*structs.Namespace { return a.Namespaces })
}

func namespaceGet(r *request) (any, error) {
	return readByID(r, wire.MethodNamespaceGet, "namespace", func(a *structs.NamespaceReply) *structs.Namespace { return a.Definition })
}

// namespaceUpsert makes or replaces the namespace of the path or, without one there, of the body.
func namespaceUpsert(r *request) (any, error) {
	args := structs.NamespaceUpsertRequest{Definition: &structs.Namespace{}, WriteRequest: r.write()}
	if err := r.decode(args.Definition); err != nil {
		return nil, err
	}
	if len(r.ids) > 0 {
		if err := r.setName(&args.Definition.Name); err != nil {
			return nil, err
		}
	}
	return written(r, wire.MethodNamespaceUpsert, &args)
}

func namespaceDelete(r *request) (any, error) {
	return written(r, wire.MethodNamespaceDelete, &structs.NamespaceDeleteRequest{Name: r.id(), WriteRequest: r.write()})
}
