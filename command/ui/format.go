package ui

import (
	"fmt"
	"time"

	"github.com/dustin/go-humanize"
)

// Ago returns how long ago a time (Unix nanoseconds) was, as "2m5s ago"; "<none>" for 0.
func Ago(nanos int64, now time.Time) string {
	if nanos == 0 {
		return "<none>"
	}
	return Short(now.Sub(time.Unix(0, nanos))) + " ago"
}

// Short rounds a duration to what a person reads at a glance.
func Short(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
}

// Time prints a time (Unix nanoseconds) in the local zone; "<none>" for 0.
func Time(nanos int64) string {
	if nanos == 0 {
		return "<none>"
	}
	return time.Unix(0, nanos).Format("2006-01-02T15:04:05-07:00")
}

// MiB prints mebibytes as people say them.
func MiB(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d MiB", n)
	}
	return Bytes(uint64(max(0, n)) << 20)
}

// Bytes prints bytes as people say them.
func Bytes(n uint64) string { return humanize.IBytes(n) }

// OrNone is s, or "<none>" when it is empty.
func OrNone(s string) string {
	if s == "" {
		return "<none>"
	}
	return s
}
