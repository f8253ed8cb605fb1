package api

import (
	"context"

	"github.com/nomadish/nomadish/structs"
)

// WhatIf returns what would become of the queue if changes were made. Nothing is changed.
func (c *Client) WhatIf(ctx context.Context, request *structs.WhatIfRequest) (w *structs.WhatIf, err error) {
	_, err = c.Put(ctx, "/v1/what-if", nil, request, &w)
	return w, err
}
