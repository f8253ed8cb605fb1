package queue

import (
	"sync"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// RequestKeys are the request keys of the blocked evaluations of one state, for the brokers of two forks of it: finding them is a good part of what a
// forecast begins with. What one has found the other takes out. It is safe for use by many goroutines.
type RequestKeys struct {
	mu    sync.Mutex
	known map[*structs.Evaluation]scheduler.RequestKey
}

// NewRequestKeys returns an empty one.
func NewRequestKeys() *RequestKeys {
	return &RequestKeys{known: map[*structs.Evaluation]scheduler.RequestKey{}}
}

// of returns the key of an evaluation, which is found if it is not known; of nil, none is.
func (k *RequestKeys) of(e *structs.Evaluation, find func() scheduler.RequestKey) scheduler.RequestKey {
	if k == nil {
		return find()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	key, known := k.known[e]
	if known {
		delete(k.known, e)
		return key
	}
	key = find()
	k.known[e] = key
	return key
}
