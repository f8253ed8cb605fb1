package nomadish

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// save returns an archive of a server's state.
func save(t *testing.T, s *Server) []byte {
	t.Helper()
	from, err := s.Stream(t.Context(), wire.MethodSnapshotSave, &structs.SnapshotSaveRequest{})
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	var out []byte
	for {
		var chunk structs.SnapshotChunk
		err := from.Recv(&chunk)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, chunk.Data...)
	}
}

// restore uploads an archive in small pieces and restores it.
func restore(ctx context.Context, s *Server, archive []byte) (*structs.SnapshotRestoreReply, error) {
	var up structs.SnapshotUploadReply
	for at := 0; at < len(archive); at += 1000 {
		piece := archive[at:min(len(archive), at+1000)]
		args := &structs.SnapshotUploadRequest{ID: up.ID, Offset: int64(at), Data: piece}
		if err := s.Call(ctx, wire.MethodSnapshotUpload, args, &up); err != nil {
			return nil, err
		}
	}
	reply := &structs.SnapshotRestoreReply{}
	return reply, s.Call(ctx, wire.MethodSnapshotRestore, &structs.SnapshotRestoreRequest{ID: up.ID}, reply)
}

func jobs(t *testing.T, s *Server, opts structs.QueryOptions) (ids []string, index uint64) {
	t.Helper()
	list := &structs.JobListReply{}
	if err := s.Call(t.Context(), wire.MethodJobList, &structs.ListRequest{QueryOptions: opts}, list); err != nil {
		t.Fatal(err)
	}
	for _, j := range list.Jobs {
		ids = append(ids, j.ID)
	}
	return ids, list.Index
}

// A state that is restored is the one that was saved, at a later index than any before;
// who waits for a change wakes, what only a leader runs goes on from it, and it survives
// a restart.
func TestRestoreTakesTheStateBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := start(t, dir)
	if err := s.Call(t.Context(), wire.MethodNodeRegister, &structs.NodeRegisterRequest{Node: node(1)}, &structs.NodeUpdateReply{}); err != nil {
		t.Fatal(err)
	}
	reply, err := register(t.Context(), s, batchJob("kept", 2))
	if err != nil {
		t.Fatal(err)
	}
	evalDone(t, s, reply.EvalID)
	archive, saved := save(t, s), s.store.Snapshot()
	if reply, err = register(t.Context(), s, batchJob("forgotten", 1)); err != nil {
		t.Fatal(err)
	}
	evalDone(t, s, reply.EvalID)
	_, before := jobs(t, s, structs.QueryOptions{})

	type answer struct {
		ids   []string
		index uint64
	}
	waiting, woken := make(chan struct{}), make(chan answer, 1)
	go func() {
		close(waiting)
		ids, index := jobs(t, s, structs.QueryOptions{MinQueryIndex: before, MaxQueryTime: time.Minute})
		woken <- answer{ids, index}
	}()
	<-waiting
	restored, err := restore(t.Context(), s, archive)
	if err != nil {
		t.Fatal(err)
	}
	now := s.store.Snapshot()
	if now.Hash() != saved.Hash() || now.Index() != restored.Index || restored.Index <= before || restored.Info.StateIndex != saved.Index() {
		t.Errorf("restored at %d (said %d), before %d; the same as saved: %v", now.Index(), restored.Index, before, now.Hash() == saved.Hash())
	}
	select {
	case got := <-woken:
		if !slices.Equal(got.ids, []string{"kept"}) || got.index != restored.Index {
			t.Errorf("who waited was told of %v at index %d, restored at %d", got.ids, got.index, restored.Index)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("who waited for a change of the jobs was not told")
	}
	// The leader's parts work on what was restored.
	within(t, 10*time.Second, "a write", func(ctx context.Context) error {
		reply, err = register(ctx, s, batchJob("next", 1))
		return err
	})
	if ev := evalDone(t, s, reply.EvalID); ev.Status != structs.EvalStatusComplete || len(ev.FailedTGAllocs) > 0 {
		t.Fatalf("the evaluation: %+v", ev)
	}
	if err := s.Shutdown(); err != nil {
		t.Fatal(err)
	}
	again := start(t, dir)
	if ids, index := jobs(t, again, structs.QueryOptions{}); !slices.Equal(ids, []string{"kept", "next"}) || index <= restored.Index {
		t.Errorf("after a restart: %v at index %d", ids, index)
	}
	report := &structs.CheckReply{}
	if err := again.Call(t.Context(), wire.MethodCheck, &structs.CheckRequest{}, report); err != nil || !report.Report.Healthy() {
		t.Errorf("the state is not in order: %+v, %v", report.Report, err)
	}
}

// What is not whole is refused before anything is touched.
func TestRestoreRefuses(t *testing.T) {
	s := start(t, "")
	if _, err := register(t.Context(), s, batchJob("kept", 1)); err != nil {
		t.Fatal(err)
	}
	archive := save(t, s)
	within(t, 10*time.Second, "rest", func(context.Context) error { // nothing is decided any more
		if len(s.store.Snapshot().PendingEvals()) != 1 {
			return errors.New("something is decided still")
		}
		return nil
	})
	before, hash := s.store.LatestIndex(), s.store.Snapshot().Hash()
	flipped := bytes.Clone(archive)
	flipped[len(flipped)/2] ^= 4
	for name, data := range map[string][]byte{
		"a flipped bit": flipped, "torn": archive[:len(archive)-1], "something else": []byte(strings.Repeat("job \"web\" {}\n", 100)),
	} {
		if _, err := restore(t.Context(), s, data); structs.CodeOf(err) != structs.CodeBadRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.Call(t.Context(), wire.MethodSnapshotRestore, &structs.SnapshotRestoreRequest{ID: "x"}, &structs.SnapshotRestoreReply{}); structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("nothing was uploaded: %v", err)
	}
	if s.store.LatestIndex() != before || s.store.Snapshot().Hash() != hash || !s.IsLeader() {
		t.Error("what was refused changed the state")
	}
}

// A server whose log is of a newer version steps down.
func TestStepsDownForNewerLog(t *testing.T) {
	s := start(t, "")
	if err := s.raft.Raft.Apply([]byte{100, 0x80}, time.Second).Error(); err != nil {
		t.Fatal(err)
	}
	within(t, 10*time.Second, "its leaving", func(context.Context) error {
		if s.raft.State() != raft.Shutdown {
			return errors.New("it is still there")
		}
		return nil
	})
}
