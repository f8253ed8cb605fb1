package rpc

import (
	"context"
	"encoding/json"

	"github.com/nomadish/nomadish/structs"
)

const (
	// MaxNamed bounds a name in an error, in bytes.
	MaxNamed = 128
	// maxMeta bounds the meta that people may write beside a job or a node, in bytes of JSON. It is kept with it, and shown in
	// lists.
	maxMeta = 4 << 10
)

// CheckMeta bounds the meta of an event.
func CheckMeta[V any](meta map[string]V) error {
	if len(meta) == 0 {
		return nil
	}
	for _, v := range meta {
		if structs.DeeperThan(structs.MaxJSONDepth-1, v) {
			return structs.Errorf(structs.CodeBadRequest, "Meta: must have at most %d lists and objects within each other", structs.MaxJSONDepth)
		}
	}
	text, err := json.Marshal(meta)
	if err != nil {
		return structs.Errorf(structs.CodeBadRequest, "Meta: %w", err)
	}
	if len(text) > maxMeta {
		return structs.Errorf(structs.CodeBadRequest, "Meta: must be at most %d bytes as JSON, not %d", maxMeta, len(text))
	}
	return nil
}

// Acquire waits for a slot of a semaphore, and returns what releases it. The error is that of ctx.
func Acquire(ctx context.Context, slots chan struct{}) (release func(), err error) {
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
