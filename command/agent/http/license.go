package httpapi

import (
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

func licenseList(r *request) (any, error) {
	return readList(r, wire.MethodLicenseList, &structs.ListRequest{QueryOptions: r.opts}, func(a *structs.LicenseListReply) []*structs.LicenseStub { return a.Licenses })
}

func licenseGet(r *request) (any, error) {
	var reply structs.LicenseReply
	if err := r.read(wire.MethodLicenseGet, &structs.IDRequest{ID: r.id(), QueryOptions: r.opts}, &reply); err != nil {
		return nil, err
	}
	if reply.License == nil {
		return nil, notFound("license")
	}
	reply.License.Users = list(reply.License.Users)
	return reply.License, nil
}

// licenseUpsert makes or replaces the license of the path.
func licenseUpsert(r *request) (any, error) {
	args := structs.LicenseUpsertRequest{License: &structs.License{}, WriteRequest: r.write()}
	if err := r.decodeKnown(args.License, structs.LicenseStatus{}); err != nil {
		return nil, err
	}
	err := r.setName(&args.License.Name)
	if err != nil {
		return nil, err
	}
	if args.CAS, args.CheckIndex, err = r.check(); err != nil {
		return nil, err
	}
	return written(r, wire.MethodLicenseUpsert, &args)
}

func licenseDelete(r *request) (any, error) {
	args := structs.LicenseDeleteRequest{Name: r.id(), WriteRequest: r.write()}
	var err error
	if args.CAS, args.CheckIndex, err = r.check(); err != nil {
		return nil, err
	}
	return written(r, wire.MethodLicenseDelete, &args)
}
