package rawexec

import (
	"context"

	"github.com/nomadish/nomadish/client/driver"
)

// Find finds a task by the ID that it was started under (driver.Finder).
func (d *Driver) Find(ctx context.Context, id string) (driver.Handle, error) {
	h, err := d.handle(id)
	if err != nil {
		return nil, err
	}
	return d.Recover(ctx, h.state)
}
