// Package gpu finds a machine's NVIDIA GPUs, where they sit and how they are.
//
// It joins two sources. The driver's library (NVML) reports what each GPU is and how
// it does; it is read by a probe, a program of its own that is embedded in the agent
// and run only where there is a driver (package probe explains why; docs/adr/0005). The
// kernel's sysfs shows on which PCIe switch and socket each GPU hangs.
//
// What follows from them is decided here, by a function of the snapshots and the
// time (DeviceTracker): the groups of devices, the tree of cells with its links, and which
// devices are healthy. The Watcher runs it every few seconds and notifies of changes.
//
// A machine without GPUs, driver or library is normal: nothing is reported, and
// nothing is logged as an error. The package only looks; it must never reset,
// configure or cut a GPU.
package gpu
