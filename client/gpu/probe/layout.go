package main

import (
	"fmt"
	"strconv"
)

// result is an nvmlReturn_t.
type result int32

// The results that are distinguished.
const (
	success          result = 0
	notSupported     result = 3
	notFound         result = 6
	driverNotLoaded  result = 9
	timedOut         result = 10
	libraryNotFound  result = 12
	functionNotFound result = 13
	gpuIsLost        result = 15
	resetRequired    result = 16
	versionMismatch  result = 18
)

var resultNames = map[result]string{
	1: "uninitialized", 2: "invalid argument", notSupported: "not supported", 4: "no permission", notFound: "not found",
	7: "insufficient size", 8: "insufficient external power", driverNotLoaded: "the driver is not loaded", timedOut: "timed out",
	11: "interrupt trouble", libraryNotFound: "a shared library is missing", functionNotFound: "the library is too old for it",
	14: "the infoROM is corrupted", gpuIsLost: "the GPU is lost", resetRequired: "the GPU must be reset",
	17: "refused by the operating system", versionMismatch: "driver and library are of different versions; load the new driver or reboot",
	20: "out of memory", 999: "unknown error",
}

// Error returns the library's word for a result.
func (r result) Error() string {
	if s, ok := resultNames[r]; ok {
		return s
	}
	return "NVML error " + strconv.Itoa(int(r))
}

// The structures below lie in memory as in nvml.h; layout_test.go holds the sizes, and
// the tests with a C compiler compare the offsets.

// pciInfo is nvmlPciInfo_t of the functions that end in _v3 (devices) and _v2 (links).
type pciInfo struct {
	_      [16]byte // the bus id as text, in the old form
	domain uint32
	bus    uint32
	device uint32
	_      [2]uint32 // device and subsystem id
	_      [32]byte  // the bus id as text
}

// address writes it as sysfs does: a domain of four digits or more, small letters.
func (p *pciInfo) address() string {
	return fmt.Sprintf("%04x:%02x:%02x.0", p.domain, p.bus, p.device)
}

// memory is nvmlMemory_t and nvmlBAR1Memory_t, in bytes.
type memory struct {
	total uint64
	_     [2]uint64 // free, used
}

// attributes is nvmlDeviceAttributes_t.
type attributes struct {
	_                        [6]uint32 // multiprocessors and engines
	gpuSlices, computeSlices uint32
	memoryMiB                uint64
}

// event is nvmlEventData_t.
type event struct {
	device device
	kind   uint64
	data   uint64
	_      [2]uint32 // GPU and compute instance
}

// margin is nvmlMarginTemperature_v1_t.
type margin struct {
	version uint32
	celsius int32
}

// marginVersion is a structure's size and its version, 1, in the top byte.
const marginVersion = 8 | 1<<24

// Numbers of nvml.h.
const (
	nameSize            = 96 // NVML_DEVICE_UUID_V2_BUFFER_SIZE, also enough for names
	versionSize         = 80 // NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE
	maxNVLinks          = 18 // NVML_NVLINK_MAX_LINKS
	sensorGPU           = 0  // NVML_TEMPERATURE_GPU
	thresholdSlowdown   = 1  // NVML_TEMPERATURE_THRESHOLD_SLOWDOWN
	clockGraphics       = 0  // NVML_CLOCK_GRAPHICS
	clockMemory         = 2  // NVML_CLOCK_MEM
	eccUncorrected      = 1  // NVML_MEMORY_ERROR_TYPE_UNCORRECTED
	eccVolatile         = 0  // NVML_VOLATILE_ECC
	eventXid            = 8  // nvmlEventTypeXidCriticalError
	remoteSwitch        = 2  // NVML_NVLINK_DEVICE_TYPE_SWITCH
	remoteUnknown       = 0xff
	eventWait           = 1   // ms: what is there, not what may come
	maxEvents           = 256 // of one snapshot
	maxGPUs, maxSlices  = 256, 16
	migEnabled, enabled = 1, 1
)

// text is what stands before the first zero byte.
func text(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}
