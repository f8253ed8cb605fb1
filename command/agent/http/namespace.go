package httpapi

import (
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

func namespaceList(r *request) (any, error) {
	var reply structs.NamespaceListReply
	if err := r.read(wire.MethodNamespaceList, &structs.ListRequest{QueryOptions: r.opts}, &reply, &reply.QueryMeta); err != nil {
		return nil, err
	}
	return list(reply.Namespaces), nil
}

func namespaceGet(r *request) (any, error) {
	var reply structs.NamespaceReply
	if err := r.read(wire.MethodNamespaceGet, &structs.IDRequest{ID: r.id(), QueryOptions: r.opts}, &reply, &reply.QueryMeta); err != nil {
		return nil, err
	}
	if reply.Definition == nil {
		return nil, notFound("namespace")
	}
	return reply.Definition, nil
}

// namespaceUpsert makes or replaces the namespace of the path or, without one there, of the body.
func namespaceUpsert(r *request) (any, error) {
	args := structs.NamespaceUpsertRequest{Definition: &structs.Namespace{}, WriteRequest: r.write()}
	if err := r.decode(args.Definition); err != nil {
		return nil, err
	}
	if len(r.ids) > 0 {
		if name := args.Definition.Name; name != "" && name != r.id() {
			return nil, badRequest("Name %q: does not match %q in the path", name, r.id())
		}
		args.Definition.Name = r.id()
	}
	return written(r, wire.MethodNamespaceUpsert, &args)
}

func namespaceDelete(r *request) (any, error) {
	return written(r, wire.MethodNamespaceDelete, &structs.NamespaceDeleteRequest{Name: r.id(), WriteRequest: r.write()})
}
