// Package nvml is what the probe program reports to the agent of a machine's NVIDIA
// GPUs: a snapshot of all of them, as JSON in one line for each line that requests one. It
// has the types of that protocol and nothing else; the probe reads the driver's
// library, the agent draws the conclusions.
package nvml
