package api

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"

	"github.com/nomadish/nomadish/structs"
)

// SnapshotSave returns an archive of the leader's state, or with q.Stale of that of the
// server that is called, and its size in bytes. Reading fails at its end if it did not
// arrive as it was sent. The caller closes it.
func (o Operator) SnapshotSave(ctx context.Context, q *Query) (archive io.ReadCloser, size int64, err error) {
	resp, err := o.client.do(ctx, http.MethodGet, "/v1/operator/snapshot", q, nil) //nolint:bodyclose // the caller closes it
	if err != nil {
		return nil, 0, err
	}
	return &digested{ReadCloser: resp.Body, sum: sha256.New(), want: resp.Header.Get("Digest")}, resp.ContentLength, nil
}

// digested checks what was read against a digest header.
type digested struct {
	io.ReadCloser
	sum  hash.Hash
	want string
}

// Read reads on.
func (d *digested) Read(p []byte) (int, error) {
	n, err := d.ReadCloser.Read(p)
	_, _ = d.sum.Write(p[:n]) // never fails
	if errors.Is(err, io.EOF) {
		if have := "sha-256=" + base64.StdEncoding.EncodeToString(d.sum.Sum(nil)); have != d.want {
			return n, fmt.Errorf("the archive arrived as %s, and was sent as %q: save it again", have, d.want)
		}
	}
	return n, err
}

// SnapshotRestore puts the state of an archive of size bytes in place of the cluster's. It
// answers when the servers have it.
func (o Operator) SnapshotRestore(ctx context.Context, archive io.Reader, size int64) (*structs.SnapshotRestoreReply, error) {
	resp, err := o.client.send(ctx, http.MethodPut, "/v1/operator/snapshot", nil, archive, size)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // read only
	var reply structs.SnapshotRestoreReply
	if err := json.NewDecoder(resp.Body).Decode(&reply); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	return &reply, nil
}
