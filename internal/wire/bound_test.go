package wire

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"runtime"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/codec"
	"github.com/nomadish/nomadish/structs"
)

// rawCall calls a method with an argument that is encoded already.
func rawCall(t *testing.T, s *Session, method string, args []byte) error {
	t.Helper()
	conn, err := s.openStream()
	if err != nil {
		t.Fatal(err)
	}
	defer s.closeStream(conn)
	head, err := frameOf(header{Method: method, Keep: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := codec.WriteRaw(conn, head, args); err != nil {
		t.Fatal(err)
	}
	st, err := readStatus(conn)
	if err != nil {
		t.Fatalf("%s: no answer: %v", method, err)
	}
	return st.err()
}

// TestBoundedArguments: what is over the bound of its method is answered so, and costs the server neither its room nor what it would be
// decoded to. The session serves other calls then, and methods without a bound take more.
func TestBoundedArguments(t *testing.T) {
	type event struct{ A, B, C, D, E, F, G, H, I, J string }
	type events struct{ Events []*event }
	m := NewMux(hclog.NewNullLogger(), 0)
	take := Unary(func(context.Context, *events) (*structs.WriteReply, error) { return &structs.WriteReply{}, nil })
	m.Handle("bounded", take)
	m.Handle("free", take)
	m.Bound("bounded", 1<<20, "send less")
	ours, theirs := net.Pipe()
	server, err := Server(theirs, Config{})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); m.Serve(t.Context(), server) }()
	s, err := Client(ours, Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(); <-done })

	list := func(n int, item byte) []byte {
		out := append([]byte{0x81, 0xa6}, "Events"...)
		out = binary.BigEndian.AppendUint32(append(out, 0xdd), uint32(n)) // small
		return append(out, bytes.Repeat([]byte{item}, n)...)
	}
	f := func(what, method string, args []byte, want structs.Code, most uint64) {
		t.Helper()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := rawCall(t, s, method, args)
		runtime.ReadMemStats(&after)
		if (err != nil) != (want != "") || err != nil && structs.CodeOf(err) != want {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > most {
			t.Errorf("%s: it costs %d KiB, at most %d are expected", what, got>>10, most>>10)
		}
	}
	const bad, mib = structs.CodeBadRequest, 1 << 20
	f("a million empty structs in 1 MiB", "bounded", list(mib-20, 0x80), bad, 32*mib)
	f("a million nils in 1 MiB", "bounded", list(mib-20, 0xc0), bad, 32*mib)
	f("4 MiB", "bounded", list(4*mib, 0xc0), bad, 32*mib)
	f("some", "bounded", list(60_000, 0x80), "", 64*mib)
	f("2 MiB without a bound", "free", list(2*mib, 0xc0), "", 1<<40)
	f("and after all that", "bounded", list(1, 0x80), "", mib)
}
