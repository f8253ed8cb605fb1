package httpapi

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// uploadChunk is how much of an archive is passed on to the leader at once, in bytes.
const uploadChunk = 512 << 10

// maxUploadTimes bounds a whole archive: its body has so many times BodyTimeout, an hour by default.
const maxUploadTimes = 120

// snapshotSave streams an archive of the leader's state, or with ?stale of that of the
// server that is called. Its length and digest go before it.
func snapshotSave(r *request) (any, error) {
	from, err := r.s.cfg.Backend.Stream(r.Context(), wire.MethodSnapshotSave, &structs.SnapshotSaveRequest{QueryOptions: r.opts})
	if err != nil {
		return nil, err
	}
	defer from.Close()
	var head structs.SnapshotChunk
	if err := from.Recv(&head); err != nil {
		return nil, err
	}
	h := r.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Length", strconv.FormatInt(head.Bytes, 10))
	h.Set("Digest", "sha-256="+base64.StdEncoding.EncodeToString(head.SHA256))
	setIndex(h, max(1, head.Index))
	r.setContact(head.Meta)
	for {
		var chunk structs.SnapshotChunk
		err := from.Recv(&chunk)
		if errors.Is(err, io.EOF) {
			return answered, nil
		}
		if err != nil {
			return nil, err
		}
		if _, err := r.w.Write(chunk.Data); err != nil {
			return nil, err
		}
	}
}

// snapshotRestore passes the body on to the leader piece by piece, which then checks it
// and has it take the place of the cluster's state.
func snapshotRestore(r *request) (any, error) {
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return nil, &statusError{http.StatusUnsupportedMediaType, "Content-Encoding " + enc + ": send the archive as it is"}
	}
	id, err := r.upload()
	if err != nil {
		return nil, err
	}
	var reply structs.SnapshotRestoreReply
	args := &structs.SnapshotRestoreRequest{ID: id, WriteRequest: r.write()}
	if err := r.change(wire.MethodSnapshotRestore, args, &reply, &reply.Index); err != nil {
		return nil, err
	}
	return &reply, nil
}

func (r *request) upload() (id string, err error) {
	ctl := http.NewResponseController(r.w)
	defer func() {
		if err == nil || id == "" {
			return
		}
		// Whoever gave up must not leave it lying there.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 5*time.Second)
		defer cancel()
		drop := &structs.SnapshotUploadRequest{ID: id, Drop: true, WriteRequest: r.write()}
		_ = r.s.cfg.Backend.Call(ctx, wire.MethodSnapshotUpload, drop, &structs.SnapshotUploadReply{})
	}()
	buf := make([]byte, uploadChunk)
	limit := time.Now().Add(maxUploadTimes * r.s.cfg.BodyTimeout)
	for sent := int64(0); ; {
		deadline := time.Now().Add(r.s.cfg.BodyTimeout) // for each piece: a large archive takes longer than other bodies
		if deadline.After(limit) {
			deadline = limit
		}
		_ = ctl.SetReadDeadline(deadline)
		n, readErr := io.ReadFull(r.Body, buf)
		end := errors.Is(readErr, io.EOF) || errors.Is(readErr, io.ErrUnexpectedEOF)
		switch {
		case readErr != nil && (!end || r.ContentLength > 0 && sent+int64(n) < r.ContentLength):
			return id, unreadable(readErr, sent+int64(n))
		case sent == 0 && n == 0:
			return id, badRequest("request body: empty; want an archive, as `operator snapshot save` writes it")
		case n > 0:
			var reply structs.SnapshotUploadReply
			args := &structs.SnapshotUploadRequest{ID: id, Offset: sent, Data: buf[:n], WriteRequest: r.write()}
			if err := r.s.cfg.Backend.Call(r.Context(), wire.MethodSnapshotUpload, args, &reply); err != nil {
				return id, err
			}
			id, sent = reply.ID, sent+int64(n)
		}
		// Where the body has ended, net/http watches for the caller's hanging up, and takes a further deadline for that.
		if end || sent == r.ContentLength {
			return id, nil
		}
	}
}
