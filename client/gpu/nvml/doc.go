// Package nvml is what the probe program tells the agent of a machine's NVIDIA
// GPUs: a snapshot of all of them, as JSON in one line for each line that asks. It
// holds the words of that talk and nothing else; the probe reads the driver's
// library, the agent draws the conclusions.
package nvml
