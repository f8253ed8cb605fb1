package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/nomadish/nomadish/client/gpu/nvml"
)

// TestLayout: structures have the sizes that nvml.h gives them on 64-bit machines.
func TestLayout(t *testing.T) {
	f := func(name string, got, want uintptr) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %d bytes, want %d", name, got, want)
		}
	}
	f("nvmlPciInfo_t", unsafe.Sizeof(pciInfo{}), 68)
	f("nvmlPciInfo_t.domain", unsafe.Offsetof(pciInfo{}.domain), 16)
	f("nvmlPciInfo_t.device", unsafe.Offsetof(pciInfo{}.device), 24)
	f("nvmlMemory_t", unsafe.Sizeof(memory{}), 24)
	f("nvmlDeviceAttributes_t", unsafe.Sizeof(attributes{}), 40)
	f("nvmlDeviceAttributes_t.memorySizeMB", unsafe.Offsetof(attributes{}.memoryMiB), 32)
	f("nvmlEventData_t", unsafe.Sizeof(event{}), 32)
	f("nvmlEventData_t.eventData", unsafe.Offsetof(event{}.data), 16)
	f("nvmlMarginTemperature_v1_t", unsafe.Sizeof(margin{}), marginVersion&0xffffff)
}

// bare is a library that has no function but those that are set after it.
func bare() *library {
	l := &library{}
	l.bind(func(string) (uintptr, bool) { return 0, false })
	l.init = func() result { return success }
	return l
}

// two has two GPUs that tell who they are and no more.
func two() *library {
	l := bare()
	l.count = func(n *uint32) result { *n = 2; return success }
	l.byIndex = func(i uint32, d *device) result { *d = device(i + 1); return success }
	put := func(text string) func(device, *byte, uint32) result {
		return func(d device, buf *byte, size uint32) result {
			copy(unsafe.Slice(buf, size), fmt.Sprintf("%s%d\x00", text, d))
			return success
		}
	}
	l.uuid, l.name = put("GPU-"), put("old")
	l.pci = func(d device, p *pciInfo) result { p.bus = uint32(d); return success } // small
	return l
}

func TestOldDriver(t *testing.T) {
	r := &reader{lib: two()}
	if res := r.start(); res != success {
		t.Fatal(res)
	}
	s := r.look()
	got, _ := json.Marshal(s.GPUs)
	want, _ := json.Marshal([]nvml.GPU{{UUID: "GPU-1", Name: "old1", BusID: "0000:01:00.0"}, {UUID: "GPU-2", Name: "old2", BusID: "0000:02:00.0"}})
	if s.Error != "" || s.Absent || !bytes.Equal(got, want) {
		t.Errorf("%+v: got %s, want %s", s, got, want)
	}
}

func TestGPUWithoutDetails(t *testing.T) {
	f := func(what string, edit func(*library), gpus int, want string) {
		t.Helper()
		l := two()
		edit(l)
		s := (&reader{lib: l}).look()
		if len(s.GPUs) != gpus || !strings.Contains(s.Error, want) || (want == "") != (s.Error == "") {
			t.Errorf("%s: %+v", what, s)
		}
	}
	only := func(bad device, res result) func(device, *byte, uint32) result {
		return func(d device, buf *byte, _ uint32) result {
			if d == bad || bad == 0 {
				return res
			}
			*buf = 'x'
			return success
		}
	}
	f("one is lost from the start", func(l *library) {
		l.byIndex = func(i uint32, d *device) result {
			*d = device(i + 1)
			if i == 0 {
				return gpuIsLost
			}
			return success
		}
	}, 1, "")
	f("one has no UUID", func(l *library) { l.uuid = only(2, notSupported) }, 1, "")
	f("none has a UUID", func(l *library) { l.uuid = only(0, 4) }, 0, "UUID: no permission")
	f("they cannot be counted", func(l *library) { l.count = func(*uint32) result { return 999 } }, 0, "unknown error")
	f("there is none", func(l *library) { l.count = func(n *uint32) result { *n = 0; return success } }, 0, "")
}

// TestResetIsNoticed by whatever function says so.
func TestResetIsNoticed(t *testing.T) {
	l := two()
	l.ecc = func(device, int32, int32, *uint64) result { return resetRequired }
	s := (&reader{lib: l}).look()
	if len(s.GPUs) != 2 || !s.GPUs[0].NeedsReset || s.GPUs[0].Lost {
		t.Errorf("%+v", s)
	}
}

func TestServe(t *testing.T) {
	lines := make(chan struct{}, 2)
	lines <- struct{}{}
	lines <- struct{}{}
	var out bytes.Buffer
	if err := serve([]string{"/nowhere/lib.so"}, lines, &out); err != nil {
		t.Fatal(err)
	}
	var s nvml.Snapshot
	if err := json.Unmarshal(out.Bytes(), &s); err != nil || !s.Absent || s.Protocol != nvml.Protocol || len(lines) != 1 {
		t.Errorf("%s: %+v, %v; %d lines left", out.String(), s, err, len(lines))
	}
}
