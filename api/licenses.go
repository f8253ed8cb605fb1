package api

import (
	"context"

	"github.com/nomadish/nomadish/structs"
)

// Licenses reads and changes licenses, which jobs of the whole region share.
type Licenses struct{ client *Client }

// Licenses returns the methods that concern licenses.
func (c *Client) Licenses() Licenses { return Licenses{c} }

// List lists the licenses by name, with how many are used.
func (l Licenses) List(ctx context.Context, q *Query) (licenses []*structs.LicenseStub, meta Meta, err error) {
	meta, err = l.client.Get(ctx, "/v1/licenses", q, &licenses)
	return licenses, meta, err
}

// Info reads a license, with who uses it.
func (l Licenses) Info(ctx context.Context, name string, q *Query) (license *structs.LicenseStatus, meta Meta, err error) {
	meta, err = l.client.Get(ctx, "/v1/license/"+seg(name), q, &license)
	return license, meta, err
}

// Register makes a license, or replaces the one of its name.
func (l Licenses) Register(ctx context.Context, license *structs.License, check Check) error {
	_, err := l.client.Put(ctx, "/v1/license/"+seg(license.Name), check.query(), license, nil)
	return err
}

// Delete deletes a license. It is refused while a job uses it.
func (l Licenses) Delete(ctx context.Context, name string, check Check) error {
	_, err := l.client.Delete(ctx, "/v1/license/"+seg(name), check.query(), nil)
	return err
}
