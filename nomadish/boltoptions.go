package nomadish

import (
	"time"

	"go.etcd.io/bbolt"
)

// boltOptions: a second agent on the same data_dir is refused after two seconds
// instead of waiting for ever.
func boltOptions() *bbolt.Options {
	return &bbolt.Options{Timeout: 2 * time.Second, NoFreelistSync: true}
}
