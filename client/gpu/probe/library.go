package main

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"

	"github.com/ebitengine/purego"
)

// device is an nvmlDevice_t, and set an nvmlEventSet_t: pointers of the library's.
type (
	device uintptr
	set    uintptr
)

// library is the functions of libnvidia-ml.so.1 that are used. One that the library
// lacks returns functionNotFound.
type library struct {
	init, shutdown func() result
	driverVersion  func(buf *byte, size uint32) result
	cudaVersion    func(version *int32) result
	count          func(n *uint32) result
	byIndex        func(i uint32, d *device) result

	uuid, name  func(d device, buf *byte, size uint32) result
	pci         func(d device, info *pciInfo) result
	memory      func(d device, m *memory) result
	bar1        func(d device, m *memory) result
	powerLimit  func(d device, milliwatts *uint32) result
	maxClock    func(d device, kind int32, mhz *uint32) result
	generation  func(d device, n *uint32) result
	lanes       func(d device, n *uint32) result
	display     func(d device, on *int32) result
	persistence func(d device, on *int32) result
	capability  func(d device, major, minor *int32) result

	migMode       func(d device, now, pending *uint32) result
	migByIndex    func(d device, i uint32, slice *device) result
	attributes    func(d device, a *attributes) result
	linkState     func(d device, link uint32, up *int32) result
	linkRemote    func(d device, link uint32, info *pciInfo) result
	linkType      func(d device, link uint32, kind *int32) result
	ecc           func(d device, kind, counter int32, n *uint64) result
	remapped      func(d device, corrected, uncorrected, pending, failed *uint32) result
	temperature   func(d device, sensor int32, celsius *uint32) result
	threshold     func(d device, which int32, celsius *uint32) result
	thermalMargin func(d device, m *margin) result

	newSet   func(s *set) result
	register func(d device, kinds uint64, s set) result
	wait     func(s set, e *event, ms uint32) result
}

// symbols names each function as the library exports it.
func (l *library) symbols() map[string]any {
	return map[string]any{
		"nvmlInit_v2": &l.init, "nvmlShutdown": &l.shutdown,
		"nvmlSystemGetDriverVersion": &l.driverVersion, "nvmlSystemGetCudaDriverVersion_v2": &l.cudaVersion,
		"nvmlDeviceGetCount_v2": &l.count, "nvmlDeviceGetHandleByIndex_v2": &l.byIndex,
		"nvmlDeviceGetUUID": &l.uuid, "nvmlDeviceGetName": &l.name, "nvmlDeviceGetPciInfo_v3": &l.pci,
		"nvmlDeviceGetMemoryInfo": &l.memory, "nvmlDeviceGetBAR1MemoryInfo": &l.bar1,
		"nvmlDeviceGetEnforcedPowerLimit": &l.powerLimit, "nvmlDeviceGetMaxClockInfo": &l.maxClock,
		"nvmlDeviceGetMaxPcieLinkGeneration": &l.generation, "nvmlDeviceGetMaxPcieLinkWidth": &l.lanes,
		"nvmlDeviceGetDisplayMode": &l.display, "nvmlDeviceGetPersistenceMode": &l.persistence,
		"nvmlDeviceGetCudaComputeCapability": &l.capability,
		"nvmlDeviceGetMigMode":               &l.migMode, "nvmlDeviceGetMigDeviceHandleByIndex": &l.migByIndex,
		"nvmlDeviceGetAttributes_v2": &l.attributes,
		"nvmlDeviceGetNvLinkState":   &l.linkState, "nvmlDeviceGetNvLinkRemotePciInfo_v2": &l.linkRemote,
		"nvmlDeviceGetNvLinkRemoteDeviceType": &l.linkType,
		"nvmlDeviceGetTotalEccErrors":         &l.ecc, "nvmlDeviceGetRemappedRows": &l.remapped,
		"nvmlDeviceGetTemperature": &l.temperature, "nvmlDeviceGetTemperatureThreshold": &l.threshold,
		"nvmlDeviceGetMarginTemperature": &l.thermalMargin,
		"nvmlEventSetCreate":             &l.newSet, "nvmlDeviceRegisterEvents": &l.register, "nvmlEventSetWait_v2": &l.wait,
	}
}

// needed are the functions without which nothing can be reported.
var needed = []string{
	"nvmlInit_v2", "nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetUUID", "nvmlDeviceGetName", "nvmlDeviceGetPciInfo_v3",
}

// errNoLibrary reports that the library is nowhere: there is no driver here.
var errNoLibrary = errors.New("the NVIDIA driver's library is not there")

// open loads the first library of the paths that is there.
func open(paths []string) (*library, error) {
	runtime.LockOSThread() // the loader keeps what went wrong by thread
	defer runtime.UnlockOSThread()
	var tried []string
	for _, path := range paths {
		handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
		if err != nil {
			tried = append(tried, err.Error())
			continue
		}
		l := &library{}
		missing := l.bind(func(name string) (uintptr, bool) {
			address, err := purego.Dlsym(handle, name)
			return address, err == nil && address != 0
		})
		for _, name := range needed {
			if missing[name] {
				return nil, fmt.Errorf("%s has no %s; update the NVIDIA driver", path, name)
			}
		}
		return l, nil
	}
	return nil, fmt.Errorf("%w: %s", errNoLibrary, strings.Join(tried, "; "))
}

// bind sets every function: to the library's, or to one that reports that there is none.
func (l *library) bind(find func(name string) (uintptr, bool)) (missing map[string]bool) {
	missing = map[string]bool{}
	for name, fn := range l.symbols() {
		if address, ok := find(name); ok {
			purego.RegisterFunc(fn, address)
			continue
		}
		missing[name] = true
		at := reflect.ValueOf(fn).Elem()
		none := []reflect.Value{reflect.ValueOf(functionNotFound)}
		at.Set(reflect.MakeFunc(at.Type(), func([]reflect.Value) []reflect.Value { return none }))
	}
	return missing
}
