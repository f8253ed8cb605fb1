package snapshot

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/nomadish/snapshot"
	"github.com/nomadish/nomadish/structs"
)

// snapshotChunk is how much of an archive is sent at once, in bytes.
const snapshotChunk = 512 << 10

// save makes an archive in a file of its own, as its digest goes before it, and
// sends it.
func (e *Endpoint) save(ctx context.Context, _ *structs.SnapshotSaveRequest, send func(any) error) error {
	fetched, err := rpc.Acquire(ctx, e.fetching)
	if err != nil {
		return err
	}
	defer fetched()
	file, err := e.Spool.File()
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it goes with its closing
	meta, sum, size, err := e.archiveAlone(ctx, file)
	if err != nil {
		return err
	}
	contact := e.Router.Contact(meta.Index)
	if err := send(&structs.SnapshotChunk{Index: meta.Index, Bytes: size, SHA256: sum, Meta: &contact}); err != nil {
		return err
	}
	buf := make([]byte, snapshotChunk)
	for {
		n, err := io.ReadFull(file, buf)
		if n > 0 {
			if err := send(&structs.SnapshotChunk{Data: buf[:n]}); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return structs.Errorf(structs.CodeInternal, "read the archive: %w", err)
		}
	}
}

// archiveAlone makes one archive at a time. Sending it keeps nobody else waiting: whoever
// fetches it may be slow.
func (e *Endpoint) archiveAlone(ctx context.Context, to *os.File) (meta *structs.SnapshotMeta, sum []byte, size int64, err error) {
	release, err := rpc.Acquire(ctx, e.saving)
	if err != nil {
		return nil, nil, 0, err
	}
	defer release()
	if meta, err = e.archive(ctx, to); err != nil {
		return nil, nil, 0, err
	}
	sum, size, err = snapshot.Digest(to)
	return meta, sum, size, err
}

func (e *Endpoint) archive(ctx context.Context, to *os.File) (*structs.SnapshotMeta, error) {
	meta, from, err := e.State.Take()
	if err != nil {
		return nil, err
	}
	defer from.Close() //nolint:errcheck // read only
	meta.Server, meta.Region, meta.Version, meta.Created = e.Router.Name, e.Router.Region, e.Version, e.Now().UTC()
	err = snapshot.Write(to, meta, cancelled{ctx, from})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, structs.Errorf(structs.CodeInternal, "%w", err).WithHint("an archive is kept on the server's disk for a while; see to it that there is room")
	}
	return meta, nil
}

// cancelled reads until its context ends.
type cancelled struct {
	ctx context.Context // it lives as long as one call
	r   io.Reader
}

func (c cancelled) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

func (e *Endpoint) upload(_ context.Context, args *structs.SnapshotUploadRequest) (*structs.SnapshotUploadReply, error) {
	switch {
	case args.Drop:
		e.Spool.Drop(args.ID)
		return &structs.SnapshotUploadReply{ID: args.ID}, nil
	case args.ID == "":
		args.ID = e.NewID()
		if err := e.Spool.Begin(args.ID); err != nil {
			return nil, err
		}
	}
	if err := e.Spool.Append(args.ID, args.Offset, args.Data); err != nil {
		return nil, err
	}
	return &structs.SnapshotUploadReply{ID: args.ID}, nil
}

// restore checks all of what was uploaded, then has it take the place of the
// state.
func (e *Endpoint) restore(ctx context.Context, args *structs.SnapshotRestoreRequest) (*structs.SnapshotRestoreReply, error) {
	release, err := rpc.Acquire(ctx, e.restoring)
	if err != nil {
		return nil, err
	}
	defer release()
	file, size, err := e.Spool.Take(args.ID)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it goes with its closing
	info, err := snapshot.Read(ctx, file, size)
	if err != nil {
		return nil, err
	}
	from, err := snapshot.State(file, size)
	if err != nil {
		return nil, err
	}
	e.Logger.Warn("the state is replaced by an archive", "index", info.Meta.Index, "saved", info.Meta.Created, "by", info.Meta.Server, "sha256", info.Digest)
	index, err := e.State.Restore(ctx, info, from)
	if err != nil {
		return nil, err
	}
	return &structs.SnapshotRestoreReply{Info: info, WriteMeta: structs.WriteMeta{Index: index}}, nil
}
