package executor

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/exec"
	"reflect"
	"testing"
	"time"
)

func TestFrames(t *testing.T) {
	var b bytes.Buffer
	want := request{Seq: 7, Op: opStop, ID: "a/ü\n", Signal: 2, Timeout: time.Second}
	if err := writeFrame(&b, &want); err != nil {
		t.Fatal(err)
	}
	whole := b.Bytes()
	for cut := range whole {
		var got request
		err := readFrame(bytes.NewReader(whole[:cut]), &got)
		if cut == 0 && !errors.Is(err, io.EOF) || cut > 0 && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("cut at %d: %v", cut, err)
		}
	}
	var got request
	if err := readFrame(&b, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v %v", got, err)
	}
	huge := binary.BigEndian.AppendUint32(nil, maxFrame+1)
	if err := readFrame(bytes.NewReader(huge), &got); !errors.Is(err, errTooLong) {
		t.Fatal(err)
	}
	if err := writeFrame(io.Discard, &request{ID: string(make([]byte, maxFrame))}); !errors.Is(err, errTooLong) {
		t.Fatal(err)
	}
}

func TestErrorsSurviveTheWire(t *testing.T) {
	for _, c := range codes {
		var r response
		r.fail(errors.Join(errors.New("more"), c.err))
		if err := r.err(); !errors.Is(err, c.err) || r.Error != err.Error() {
			t.Errorf("%s: %v", c.code, err)
		}
	}
	var r response
	r.fail(io.EOF)
	if err := r.err(); err == nil || errors.Is(err, io.EOF) || err.Error() != "EOF" {
		t.Errorf("internal: %v", err)
	}
}

func TestOwnStat(t *testing.T) {
	st, err := readStat(os.Getpid())
	if err != nil || st.pid != os.Getpid() || st.ppid != os.Getppid() || st.startTicks == 0 || st.rss == 0 {
		t.Fatalf("%+v %v", st, err)
	}
	if !alive(st.pid, st.startTicks) || alive(st.pid, st.startTicks+1) {
		t.Fatal("alive")
	}
}

// Records of another boot, of a start that never was, and rubbish.
func TestAdoptRecords(t *testing.T) {
	f := newFixture(t)
	s := store{f.dir}
	boot, err := bootID()
	if err != nil {
		t.Fatal(err)
	}
	put := func(rec *record) {
		t.Helper()
		if err := s.create(rec.ID); err != nil {
			t.Fatal(err)
		}
		if err := s.put(rec, true); err != nil {
			t.Fatal(err)
		}
	}
	none := LogSpec{Disabled: true}
	put(&record{ID: "other/boot", State: StateRunning, BootID: "x", Pid: os.Getpid(), StartTicks: 1, Logs: none})
	put(&record{ID: "other process", State: StateRunning, BootID: boot, Pid: os.Getpid(), StartTicks: 1, Logs: none})
	put(&record{ID: "never", State: StateStarting, BootID: boot, Logs: none})
	put(&record{ID: "ended", State: StateExited, BootID: "x", Pid: 5, Exit: &Exit{Code: 3}})
	put(&record{ID: "rubbish", State: "unheard of"})
	if err := os.WriteFile(taskDir(f.dir, "ended")+"/../t-empty", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(taskDir(f.dir, "no record"), 0o700); err != nil {
		t.Fatal(err)
	}
	if e := f.wait("other/boot"); !e.Unknown || e.Reason != "the machine was restarted while it ran" {
		t.Errorf("%+v", e)
	}
	if e := f.wait("other process"); !e.Unknown {
		t.Errorf("%+v", e)
	}
	if e := f.wait("ended"); e.Code != 3 || e.Unknown {
		t.Errorf("%+v", e)
	}
	all, err := f.List(t.Context())
	if err != nil || len(all) != 3 {
		t.Errorf("%+v %v", all, err)
	}
}

// Where the kernel reports the exit code of a process to one that is not its parent, the code is right.
func TestExitInfo(t *testing.T) {
	f := func(script string, want Exit) {
		t.Helper()
		cmd := exec.Command("/bin/sh", "-c", "read x; "+script)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		st, err := readStat(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		pidfd, err := watchProcess(st.pid, st.startTicks)
		if err != nil || pidfd == nil {
			t.Fatal(pidfd, err)
		}
		defer func() { _ = pidfd.Close() }()
		fd := int(pidfd.Fd())
		if hasExited(fd) {
			t.Error("has not ended yet")
		}
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // an exit code is no error here
		if !hasExited(fd) {
			t.Error("has ended")
		}
		if ws, ok := exitInfo(fd); ok {
			if got := *exitOf(ws, time.Time{}); got != want {
				t.Errorf("%s: got %+v, want %+v", script, got, want)
			}
		}
		if again, err := watchProcess(st.pid, st.startTicks); again != nil || err != nil {
			t.Errorf("watching an ended process: %v %v", again, err)
		}
	}
	f("exit 7", Exit{Code: 7})
	f("kill -TERM $$", Exit{Signal: 15})
}

// An executor that died between fork and writing the process down.
func TestAdoptStarting(t *testing.T) {
	f := newFixture(t)
	st := f.start(f.sh("a", "sleep 1000"))
	f.killExecutor()
	data, err := os.ReadFile(taskDir(f.dir, "a") + "/" + recordName)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := decodeRecord(data)
	if err != nil {
		t.Fatal(err)
	}
	rec.State, rec.Pid, rec.StartTicks = StateStarting, 0, 0
	if err := (store{f.dir}).put(rec, false); err != nil {
		t.Fatal(err)
	}
	if got := f.start(f.sh("a", "exit 1")); got.Pid != st.Pid || got.State != StateRunning || got.StartTicks != st.StartTicks {
		t.Fatalf("%+v, was %+v", got, st)
	}
}

func FuzzReadFrame(f *testing.F) {
	var b bytes.Buffer
	if err := writeFrame(&b, &request{Seq: 1, Op: opStart, Spec: &Spec{ID: "a", Args: []string{"b"}}}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte{0, 0, 0, 2, '{', '}'})
	f.Add([]byte{255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, data []byte) {
		var req request
		if readFrame(bytes.NewReader(data), &req) == nil {
			if req.Spec != nil {
				_ = req.Spec.Validate()
			}
			var again request
			var b bytes.Buffer
			if err := writeFrame(&b, &req); err != nil {
				t.Fatal(err)
			}
			if err := readFrame(&b, &again); err != nil {
				t.Fatal(err)
			}
		}
		var resp response
		if readFrame(bytes.NewReader(data), &resp) == nil {
			_ = resp.err()
		}
	})
}

func FuzzDecodeRecord(f *testing.F) {
	f.Add([]byte(`{"Version":1,"ID":"a","State":"running","Pid":5}`))
	f.Add([]byte(`{"Version":1,"ID":"a","State":"exited","Exit":{"Code":1}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		rec, err := decodeRecord(data)
		if err != nil {
			return
		}
		if rec.State == StateRunning && rec.Pid <= 1 || rec.State == StateExited && rec.Exit == nil {
			t.Fatalf("accepted %+v", rec)
		}
	})
}

func FuzzParseStat(f *testing.F) {
	own, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(own)
	f.Add([]byte("1 (a) b) (c) S 1 2 3"))
	f.Fuzz(func(t *testing.T, data []byte) {
		st, err := parseStat(data)
		if err == nil {
			_, _ = measure([]procStat{st}, st.pid, time.Time{})
		}
	})
}
