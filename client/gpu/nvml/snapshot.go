package nvml

// Protocol is the version of the talk between agent and probe. They are built
// together; another number means that an old probe was embedded.
const Protocol = 1

// MaxLine bounds one snapshot in bytes: 64 GPUs with their links and slices take
// about 200 KB.
const MaxLine = 4 << 20

// Request is the line that requests a snapshot.
const Request = `{"Op":"look"}`

// Snapshot is all GPUs at one moment.
type Snapshot struct {
	Protocol int
	// Absent is true if there is no driver or no GPU: normal, and no error. Why is in
	// Error.
	Absent bool   `json:",omitempty"`
	Error  string `json:",omitempty"` // why nothing could be read; the probe ends after it
	Driver string `json:",omitempty"` // version
	CUDA   string `json:",omitempty"` // the newest CUDA version that the driver can do, "12.4"
	GPUs   []GPU  `json:",omitempty"`
	// Events are the errors that the driver reported since the last snapshot.
	Events []Event `json:",omitempty"`
}

// Event is an error that the driver reported once.
type Event struct {
	UUID string // of the GPU; empty: not known
	Xid  uint64 // NVIDIA's number of the error
}

// GPU is one GPU. What a GPU or driver does not report is zero or nil.
type GPU struct {
	UUID  string
	Name  string // "NVIDIA H100 80GB HBM3"
	BusID string // "0000:18:00.0", as sysfs writes it

	MemoryMiB         uint64
	BAR1MiB           uint64
	PowerLimitW       uint64 // what it may draw
	CoreClockMHz      uint64 // at most
	MemoryClockMHz    uint64 // at most
	PCIeGeneration    int    // at most, of GPU and slot
	PCIeLanes         int    // at most, of GPU and slot
	DisplayMode       *bool
	PersistenceMode   *bool
	ComputeCapability string // "9.0"

	MIG    bool    // it is cut into slices, and cannot be used whole
	Slices []Slice `json:",omitempty"`
	Links  []Link  `json:",omitempty"` // active NVLinks

	Lost          bool // it fell off the bus
	NeedsReset    bool
	Uncorrected   uint64 // ECC errors that were not corrected since the last reset
	RemapFailed   bool   // broken memory rows could not be replaced
	Temperature   int    // °C; 0: not known
	SlowdownAt    int    // °C at which the hardware slows down; 0: not known
	ThermalMargin *int   // °C left until the hardware slows down
}

// Slice is a MIG device: a part of a GPU that is a device of its own.
type Slice struct {
	UUID      string
	Profile   string // "1g.10gb"
	MemoryMiB uint64
}

// Link is one NVLink of a GPU that is up.
type Link struct {
	// Peer is the bus id of the other end. Switch: the other end is an NVSwitch,
	// which joins all that have a link to it.
	Peer   string
	Switch bool `json:",omitempty"`
}
