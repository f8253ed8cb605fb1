package httpapi

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

func TestSnapshotSave(t *testing.T) {
	f := newFake()
	f.stream = func(ctx context.Context, _ string) *fakeStream {
		return &fakeStream{ctx: ctx, items: []any{
			structs.SnapshotChunk{Index: 42, Bytes: 6, SHA256: []byte{1, 2, 3}},
			structs.SnapshotChunk{Data: []byte("abc")}, structs.SnapshotChunk{Data: []byte("def")},
		}}
	}
	s := newTestServer(t, testConfig(f))
	resp, err := http.Get(s.URL + "/v1/operator/snapshot?stale") // a test
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // read only
	body, err := io.ReadAll(resp.Body)
	if err != nil || string(body) != "abcdef" || resp.ContentLength != 6 || resp.Header.Get("Digest") != "sha-256=AQID" || resp.Header.Get("X-Nomad-Index") != "42" {
		t.Errorf("%q of %d, %v, %v", body, resp.ContentLength, resp.Header, err)
	}
	if args, ok := f.args[wire.MethodSnapshotSave].(*structs.SnapshotSaveRequest); !ok || !args.AllowStale {
		t.Errorf("asked %+v", f.args)
	}
}

func TestSnapshotRestore(t *testing.T) {
	f := newFake()
	f.answer[wire.MethodSnapshotUpload] = structs.SnapshotUploadReply{ID: "u"}
	f.answer[wire.MethodSnapshotRestore] = structs.SnapshotRestoreReply{Info: &structs.SnapshotInfo{Bytes: 3}, WriteMeta: structs.WriteMeta{Index: 9}}
	s := newTestServer(t, testConfig(f))
	put := func(body io.Reader) (int, string, http.Header) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.URL+"/v1/operator/snapshot", body)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close() //nolint:errcheck // read only
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text), resp.Header
	}
	code, text, h := put(bytes.NewReader(make([]byte, 2*uploadChunk+1)))
	if code != http.StatusOK || !strings.Contains(text, `"Bytes":3`) || h.Get("X-Nomad-Index") != "9" {
		t.Errorf("%d %s %v", code, text, h)
	}
	if got := strings.Join(f.calls, " "); got != strings.Repeat(wire.MethodSnapshotUpload+" ", 3)+wire.MethodSnapshotRestore {
		t.Errorf("called %s", got)
	}
	if last, ok := f.args[wire.MethodSnapshotUpload].(*structs.SnapshotUploadRequest); !ok || last.ID != "u" || last.Offset != 2*uploadChunk || len(last.Data) != 1 {
		t.Errorf("the last piece: %+v", last)
	}
	if code, text, _ := put(strings.NewReader("")); code != http.StatusBadRequest || !strings.Contains(text, "empty") {
		t.Errorf("nothing: %d %s", code, text)
	}
	f.answer[wire.MethodSnapshotRestore] = structs.Errorf(structs.CodeBadRequest, "archive: torn")
	if code, text, _ := put(strings.NewReader("x")); code != http.StatusBadRequest || !strings.Contains(text, "archive: torn") {
		t.Errorf("torn: %d %s", code, text)
	}
	f.answer[wire.MethodSnapshotUpload] = structs.Errorf(structs.CodeLimited, "2 archives are being uploaded")
	if code, _, _ := put(strings.NewReader("x")); code != http.StatusTooManyRequests {
		t.Errorf("too many: %d", code)
	}
}
