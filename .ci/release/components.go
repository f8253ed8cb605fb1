package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/CycloneDX/cyclonedx-gomod/pkg/generate/bin"
	"github.com/rs/zerolog"
)

// components writes what the binary is made of, as a CycloneDX document (SBOM).
func (r *release) components(arch string) error {
	g, err := bin.NewGenerator(r.binary(arch), bin.WithIncludeStdlib(true), bin.WithVersionOverride("v"+r.version), bin.WithLogger(zerolog.Nop()))
	if err != nil {
		return fmt.Errorf("components: %w", err)
	}
	bom, err := g.Generate()
	if err != nil {
		return fmt.Errorf("components: %w", err)
	}
	if bom.Metadata == nil {
		bom.Metadata = &cyclonedx.Metadata{}
	}
	bom.Metadata.Timestamp = r.time.Format(time.RFC3339)
	content, err := os.ReadFile(r.binary(arch))
	if err != nil {
		return err
	}
	// The number is the binary's own, so that the same binary has the same document.
	sum := sha256.Sum256(content)
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // a UUID of version 8
	bom.SerialNumber = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
	f, err := os.Create(r.named(arch, ".cdx.json"))
	if err != nil {
		return err
	}
	if err := cyclonedx.NewBOMEncoder(f, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		_ = f.Close()
		return fmt.Errorf("components: %w", err)
	}
	return f.Close()
}
