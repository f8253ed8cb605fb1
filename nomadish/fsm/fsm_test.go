package fsm

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/internal/codec"
	"github.com/nomadish/nomadish/internal/telemetry"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

type replica struct {
	store *state.Store
	fsm   *FSM
}

func newReplica() *replica {
	store, writer := state.New(state.Options{HistoryMax: 5, JobVersions: 2})
	return &replica{store, New(writer, store, hclog.NewNullLogger())}
}

func (r *replica) apply(index uint64, data []byte) any {
	return r.fsm.Apply(&raft.Log{Index: index, Type: raft.LogCommand, Data: data})
}

func dump(t interface{ Fatal(...any) }, r *replica) []byte {
	var out bytes.Buffer
	if err := write(&out, r.store.Snapshot()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func (r *replica) restore(data []byte) error {
	return r.fsm.Restore(io.NopCloser(bytes.NewReader(data)))
}

// TestDeepEntry: an entry that is deeper than what the log's decoder takes is refused before it is in the log.
func TestDeepEntry(t *testing.T) {
	for _, depth := range []int{structs.MaxJSONDepth, 1000, 1017, 1100} {
		var config any = []any{1}
		for range depth - 2 {
			config = []any{config}
		}
		job := &structs.Job{TaskGroups: []*structs.TaskGroup{{Tasks: []*structs.Task{{Config: map[string]any{"a": config}}}}}}
		data, err := Encode(structs.LogJobRegister, &structs.JobRegisterEntry{Job: job})
		if depth == structs.MaxJSONDepth {
			if _, _, err := Decode(data); err != nil {
				t.Error(err)
			}
		} else if !errors.Is(err, structs.ErrBadRequest) || !strings.Contains(err.Error(), "at most 512 lists and objects") {
			t.Errorf("%d lists within each other: %v, want a bad request with the limit", depth, err)
		}
	}
}

// Every entry comes out of the log as it went in, whatever is in its fields.
func TestEntriesComeOutAsTheyWentIn(t *testing.T) {
	for _, typ := range structs.LogTypes() {
		rapid.Check(t, func(t *rapid.T) {
			want, err := structs.NewLogPayload(typ)
			if err != nil {
				t.Fatal(err)
			}
			fill(t, reflect.ValueOf(want).Elem(), 6)
			data, err := Encode(typ, want)
			if err != nil {
				t.Fatal(err)
			}
			gotType, got, err := Decode(data)
			if err != nil || gotType != typ {
				t.Fatalf("type %d: got type %d, error %v", typ, gotType, err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("type %d:\n got %+v\nwant %+v", typ, got, want)
			}
		})
	}
}

// Two replicas that are fed the same log are the same; one that was restored from a
// snapshot in between is the same too; what is derived equals what is counted anew.
func TestReplicasStayEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := newReplica(), newReplica()
		s := &script{t: t}
		steps := rapid.IntRange(1, 40).Draw(t, "steps")
		restart := rapid.IntRange(1, steps).Draw(t, "restart")
		for i := uint64(1); i <= uint64(steps); i++ {
			typ, payload := s.entry()
			data, err := Encode(typ, payload)
			if err != nil {
				t.Fatal(err)
			}
			ra, rb := a.apply(i, data), b.apply(i, data)
			if (ra == nil) != (rb == nil) {
				t.Fatalf("entry %d: answers %v and %v", i, ra, rb)
			}
			if structs.CodeOf(asError(ra)) == structs.CodeInternal {
				t.Fatalf("entry %d of type %d: %v", i, typ, ra)
			}
			snap := a.store.Snapshot()
			if d := state.Differences(snap); len(d) > 0 {
				t.Fatalf("entry %d of type %d %+v: %v", i, typ, payload, d)
			}
			if snap.Index() != i {
				t.Fatalf("index %d after entry %d", snap.Index(), i)
			}
			if i == uint64(restart) {
				fresh := newReplica()
				if err := fresh.restore(dump(t, b)); err != nil {
					t.Fatal(err)
				}
				b = fresh
			}
			if ha, hb := snap.Hash(), b.store.Snapshot().Hash(); ha != hb {
				t.Fatalf("entry %d of type %d: hashes %s and %s", i, typ, ha, hb)
			}
		}
		if d := state.Differences(b.store.Snapshot()); len(d) > 0 {
			t.Fatalf("restored: %v", d)
		}
	})
}

func asError(answer any) error {
	err, ok := answer.(error)
	if !ok {
		return structs.ErrNotFound // no error: any code but internal
	}
	return err
}

func filled(t *testing.T) *replica {
	t.Helper()
	r := newReplica()
	for i, p := range []any{
		&structs.NodeRegisterEntry{Node: &structs.Node{ID: "n", Status: structs.NodeStatusReady}},
		&structs.JobRegisterEntry{Job: &structs.Job{Namespace: "default", ID: "j", Type: "service", TaskGroups: []*structs.TaskGroup{{Name: "g"}}}},
	} {
		typ := []structs.LogType{structs.LogNodeRegister, structs.LogJobRegister}[i]
		data, err := Encode(typ, p)
		if err != nil {
			t.Fatal(err)
		}
		if answer := r.apply(uint64(i+1), data); answer != nil {
			t.Fatal(answer)
		}
	}
	return r
}

func TestRestoreRefusesWhatIsTornAndKeepsTheState(t *testing.T) {
	whole := dump(t, filled(t))
	r := filled(t)
	before := r.store.Snapshot().Hash()
	for n := range whole {
		if err := r.restore(whole[:n]); err == nil {
			t.Fatalf("%d bytes of %d were taken for a whole snapshot", n, len(whole))
		}
		damaged := bytes.Clone(whole)
		damaged[n] ^= 0x20
		if err := r.restore(damaged); err == nil {
			t.Fatalf("a snapshot with byte %d damaged was taken", n)
		}
	}
	if r.store.Snapshot().Hash() != before || r.store.LatestIndex() != 2 {
		t.Fatal("a refused snapshot changed the state")
	}
	if err := r.restore(whole); err != nil {
		t.Fatal(err)
	}
	if r.store.Snapshot().Hash() != before {
		t.Fatal("the restored state is another")
	}
}

type sink struct {
	bytes.Buffer
	closed, cancelled bool
	fail              error
}

func (s *sink) Write(p []byte) (int, error) {
	if s.fail != nil {
		return 0, s.fail
	}
	return s.Buffer.Write(p)
}
func (s *sink) Close() error  { s.closed = true; return nil }
func (s *sink) Cancel() error { s.cancelled = true; return nil }
func (s *sink) ID() string    { return "sink" }

func TestSnapshotIsOfItsMomentAndEndsItsSink(t *testing.T) {
	r := filled(t)
	snap, err := r.fsm.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	want := r.store.Snapshot().Hash()
	data, err := Encode(structs.LogJobDeregister, &structs.JobDeregisterEntry{Namespace: "default", JobID: "j", Purge: true})
	if err != nil {
		t.Fatal(err)
	}
	if answer := r.apply(3, data); answer != nil {
		t.Fatal(answer)
	}
	good := &sink{}
	if err := snap.Persist(good); err != nil || !good.closed || good.cancelled {
		t.Fatalf("persist: %v, closed %v, cancelled %v", err, good.closed, good.cancelled)
	}
	snap.Release()
	fresh := newReplica()
	if err := fresh.restore(good.Bytes()); err != nil {
		t.Fatal(err)
	}
	if fresh.store.Snapshot().Hash() != want || fresh.store.LatestIndex() != 2 {
		t.Fatal("the snapshot is not of the moment when it was taken")
	}
	full := &sink{fail: errors.New("disk full")}
	if err := snap.Persist(full); !errors.Is(err, full.fail) || !full.cancelled || full.closed {
		t.Fatalf("persist on a full disk: %v, closed %v, cancelled %v", err, full.closed, full.cancelled)
	}
}

func TestEntriesThatCannotBeReadMoveTheIndexOnly(t *testing.T) {
	r := filled(t)
	before := r.store.Snapshot().Hash()
	for i, data := range [][]byte{nil, {0}, {0, 1}, {byte(structs.LogPlanApply), 0xff}} {
		index := uint64(i + 3)
		if err := asError(r.apply(index, data)); structs.CodeOf(err) != structs.CodeInternal {
			t.Errorf("entry %v: answer %v", data, err)
		}
		if r.store.LatestIndex() != index {
			t.Errorf("entry %v: index %d, want %d", data, r.store.LatestIndex(), index)
		}
	}
	answers := r.fsm.ApplyBatch([]*raft.Log{{Index: 7, Type: raft.LogConfiguration}, {Index: 8, Type: raft.LogCommand, Data: []byte{0}}})
	if answers[0] != nil || answers[1] == nil || r.store.LatestIndex() != 8 {
		t.Errorf("batch: answers %v, index %d", answers, r.store.LatestIndex())
	}
	if r.store.Snapshot().Hash() != before {
		t.Error("an unreadable entry changed the state")
	}
}

// A snapshot that is moved is the same state at a later index, at which it says that it
// took the place of what was there.
func TestMove(t *testing.T) {
	r := newReplica()
	for i, s := range []string{"a", "b"} {
		entry, err := Encode(structs.LogNodeRegister, &structs.NodeRegisterEntry{Node: &structs.Node{ID: s, SecretID: "s"}, EvalSeed: "e"})
		if err != nil {
			t.Fatal(err)
		}
		r.apply(uint64(i+1), entry) // small
	}
	whole := dump(t, r)
	from, size, err := Move(bytes.NewReader(whole), int64(len(whole)), 1<<40)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(iotest.OneByteReader(from))
	if err != nil || int64(len(data)) != size {
		t.Fatalf("%d bytes, %d are said: %v", len(data), size, err)
	}
	moved := newReplica()
	if err := moved.restore(data); err != nil {
		t.Fatal(err)
	}
	snap := moved.store.Snapshot()
	if snap.Index() != 1<<40 || snap.Restored() != 1<<40 || snap.TableIndex(state.TableNodes) != 1<<40 || snap.Hash() != r.store.Snapshot().Hash() {
		t.Errorf("index %d, restored at %d, table %d, equal %v", snap.Index(), snap.Restored(), snap.TableIndex(state.TableNodes),
			snap.Hash() == r.store.Snapshot().Hash())
	}
	again := newReplica()
	if err := again.restore(dump(t, moved)); err != nil || again.store.Snapshot().Restored() != 1<<40 {
		t.Errorf("a snapshot of it forgets that it was restored: %v", err)
	}
	if _, _, err := Move(bytes.NewReader(whole), int64(len(whole)), 1); err == nil {
		t.Error("a snapshot was moved back in time")
	}
	if _, _, err := Move(bytes.NewReader(whole[:40]), 40, 9); err == nil {
		t.Error("a torn snapshot was moved")
	}
	if from, _, err := Move(bytes.NewReader(whole[:len(whole)-9]), int64(len(whole)), 9); err == nil {
		if _, err = io.ReadAll(from); err == nil {
			t.Error("a torn snapshot was copied without a word")
		}
	}
}

// What a newer version wrote is refused, and says so.
func TestNewerSnapshot(t *testing.T) {
	r := newReplica()
	for _, x := range []struct {
		head Header
		row  *row
		want string
	}{
		{Header{Version: version + 1}, nil, "a newer version wrote it"},
		{Header{Version: 0}, nil, "which there never was"},
		{Header{Version: version}, &row{Table: "marvels", Data: []byte{0x80}}, `table "marvels": unknown; the snapshot was written by a newer version`},
	} {
		var out bytes.Buffer
		if err := writeHeader(&out, &x.head); err != nil {
			t.Fatal(err)
		}
		if x.row != nil {
			if err := codec.WriteFrame(&out, x.row); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.restore(out.Bytes()); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%+v: %v, want %q", x.head, err, x.want)
		}
	}
}

// An entry of a newer version is passed over if its type says that it may be. Any other is
// the end: the state stays where it is and is not saved, so that a newer version goes on
// there; a snapshot of a server that went on brings it back.
func TestEntriesOfANewerVersion(t *testing.T) {
	r := newReplica()
	var told []error
	r.fsm.OnHalt(func(err error) { told = append(told, err) })
	register := func(id string) []byte {
		entry, err := Encode(structs.LogNodeRegister, &structs.NodeRegisterEntry{Node: &structs.Node{ID: id, SecretID: "s"}, EvalSeed: "e"})
		if err != nil {
			t.Fatal(err)
		}
		return entry
	}
	if err := r.apply(1, register("a")); err != nil {
		t.Fatal(err)
	}
	if err := r.apply(2, []byte{byte(structs.LogIgnorable | 99), 0x80}); err != nil || r.store.LatestIndex() != 2 {
		t.Errorf("an entry that may be passed over: %v, at index %d", err, r.store.LatestIndex())
	}
	good := dump(t, r)
	for i, entry := range [][]byte{{100, 0x80}, register("b"), {101}} {
		if err, ok := r.apply(uint64(3+i), entry).(error); !ok || !strings.Contains(err.Error(), "type 100") { // small
			t.Errorf("entry %d: %v", 3+i, err)
		}
	}
	if r.store.LatestIndex() != 2 || len(told) != 1 {
		t.Errorf("the state is at index %d, told %v", r.store.LatestIndex(), told)
	}
	if _, err := r.fsm.Snapshot(); err == nil {
		t.Error("a state that has stopped is saved as if it had gone on")
	}
	if err := r.restore(good); err != nil {
		t.Fatal(err)
	}
	if err := r.apply(9, register("c")); err != nil || r.store.LatestIndex() != 9 {
		t.Errorf("after a snapshot: %v, at index %d", err, r.store.LatestIndex())
	}
}

// What is encoded at once of a snapshot is bounded by the size of what came before, and little at first.
func TestOutgoingIsBounded(t *testing.T) {
	var to bytes.Buffer
	o := &outgoing{to: &to}
	add := func(table string, size, want int) {
		t.Helper()
		if err := o.add(table, &structs.Job{ID: strings.Repeat("x", size)}); err != nil {
			t.Fatal(err)
		}
		if o.most != want {
			t.Errorf("after a row of %d bytes %d are taken at once, not %d", size, o.most, want)
		}
	}
	for range firstOutgoing - 1 {
		add("small", 10, firstOutgoing)
	}
	add("small", 10, maxOutgoing)
	for range firstOutgoing - 1 {
		add("large", maxRowBytes/2, firstOutgoing)
	}
	add("large", maxRowBytes/2, 1)
	add("large", 10, maxOutgoing)
	if err := o.flush(); err != nil {
		t.Fatal(err)
	}
	if err := o.wait(); err != nil || o.count != 2*firstOutgoing+1 || to.Len() < firstOutgoing*maxRowBytes/2 {
		t.Errorf("%d rows in %d bytes: %v", o.count, to.Len(), err)
	}
}

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no room") }

// That rows could not be written is told, whether others follow them or not.
func TestRowsThatCannotBeWritten(t *testing.T) {
	for _, rows := range []int{1, 10 * firstOutgoing} {
		o := &outgoing{to: full{}}
		for range rows {
			if o.add("jobs", &structs.Job{}) != nil {
				break
			}
		}
		if errors.Join(o.flush(), o.wait()) == nil {
			t.Errorf("of %d rows nothing is told", rows)
		}
	}
}

// What an entry of an earlier version says is empty, and not that it is missing, is so still when a snapshot has been restored:
// the hash tells one from the other.
func TestSnapshotKeepsWhatIsEmpty(t *testing.T) {
	r := newReplica()
	entry := &structs.JobRegisterEntry{
		Job: &structs.Job{
			ID: "j", Namespace: "default", Type: structs.JobTypeBatch, Datacenters: []string{}, Constraints: []*structs.Constraint{},
			TaskGroups: []*structs.TaskGroup{{Name: "g", Count: 1, Meta: map[string]string{}, Tasks: []*structs.Task{{Name: "t", Config: map[string]any{}, Env: map[string]string{}}}}},
			Meta:       map[string]string{},
		},
		Eval: &structs.Evaluation{ID: "e", Namespace: "default", JobID: "j", Status: structs.EvalStatusPending, QueuedAllocations: map[string]int{}},
		Time: 1,
	}
	payload, err := codec.EncodeRow(entry) // as earlier versions wrote them
	if err != nil {
		t.Fatal(err)
	}
	if answer := r.apply(1, append([]byte{byte(structs.LogJobRegister)}, payload...)); answer != nil {
		t.Fatal(answer)
	}
	job := r.store.Snapshot().Job(nil, "default", "j")
	if job == nil || job.Meta == nil || job.TaskGroups[0].Tasks[0].Config == nil {
		t.Fatalf("this shows nothing: %+v", job)
	}
	snap, err := r.fsm.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	out := &sink{}
	if err := snap.Persist(out); err != nil {
		t.Fatal(err)
	}
	snap.Release()
	fresh := newReplica()
	if err := fresh.restore(out.Bytes()); err != nil {
		t.Fatal(err)
	}
	if fresh.store.Snapshot().Hash() != r.store.Snapshot().Hash() {
		t.Error("the restored state has another hash")
	}
}

// TestTimers: every type of log entry has a timer of its own.
func TestTimers(t *testing.T) {
	seen := map[any]structs.LogType{}
	for _, kind := range structs.LogTypes() {
		timer := timerOf(kind)
		if timer == nil {
			t.Errorf("log entry type %d has no timer: give it one", kind)
		} else if other, ok := seen[timer]; ok {
			t.Errorf("log entry types %d and %d share a timer", kind, other)
		}
		seen[timer] = kind
	}
	if timerOf(structs.LogTypeLast+1) != nil || timerOf(255) != nil {
		t.Error("an unknown type has a timer")
	}
}

// TestMeasured: entries are measured whether they are applied alone or together, and snapshots when they are written.
func TestMeasured(t *testing.T) {
	store, writer := state.New(state.Options{})
	f := New(writer, store, hclog.NewNullLogger())
	begun, ended := map[*telemetry.Timer]int{}, map[*telemetry.Timer]int{}
	f.Measure(func(timer *telemetry.Timer) func() {
		begun[timer]++
		return func() { ended[timer]++ }
	})
	data, err := Encode(structs.LogClusterMeta, &structs.ClusterMetaEntry{ClusterID: "c", Time: 1})
	if err != nil {
		t.Fatal(err)
	}
	entry := func(index uint64) *raft.Log { return &raft.Log{Index: index, Type: raft.LogCommand, Data: data} }
	f.Apply(entry(1))
	f.ApplyBatch([]*raft.Log{entry(2), entry(3)})
	snap, err := f.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	sink, err := raft.NewInmemSnapshotStore().Create(raft.SnapshotVersionMax, 3, 1, raft.Configuration{}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := snap.Persist(sink); err != nil {
		t.Fatal(err)
	}
	want := map[*telemetry.Timer]int{timerOf(structs.LogClusterMeta): 3, persistTimer: 1}
	if !maps.Equal(begun, want) || !maps.Equal(ended, want) {
		t.Errorf("begun %v, ended %v, want %v", begun, ended, want)
	}
}
