package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nomadish/nomadish/command/examples"
	"github.com/nomadish/nomadish/command/jobspec/hclfile"
	"github.com/nomadish/nomadish/structs"
)

// readNodePool reads the node pool of a file; "-" is standard input.
func readNodePool(e *env, path string, isJSON bool) (*structs.NodePool, error) {
	src, err := readSpecFile(e.in, path, "node pool", "node pools")
	if err != nil {
		return nil, err
	}
	var pool *structs.NodePool
	if isJSON {
		if pool, err = nodePoolOfJSON(src); err != nil {
			err = fmt.Errorf("%s: %w", path, err)
		}
	} else {
		pool, err = nodePoolOfHCL(path, src)
	}
	if err != nil {
		return nil, otherLanguage(path, src, isJSON, err)
	}
	if err := pool.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return pool, nil
}

// otherLanguage returns an error that states that a file is JSON or HCL where the other was expected, or err if it is not.
func otherLanguage(path string, src []byte, isJSON bool, err error) error {
	text := bytes.TrimSpace(src)
	begins := len(text) > 0 && bytes.IndexByte([]byte(`{["`), text[0]) >= 0 // as JSON does, and no file of HCL
	switch {
	case isJSON && !begins && len(text) > 0:
		return fmt.Errorf("%s: it looks like HCL, not JSON: leave -json out", path)
	case !isJSON && begins:
		return fmt.Errorf("%s: it looks like JSON, not HCL: use -json", path)
	}
	return err
}

// nodePoolOfHCL reads node_pool "NAME" { … }, the one block of a file.
func nodePoolOfHCL(path string, src []byte) (*structs.NodePool, error) {
	blocks, d, err := specBlocks{
		types:   []string{"node_pool"},
		unnamed: `a node pool needs one name: write %[1]s "NAME" { … }`,
		none:    `the file has no node pool: write node_pool "NAME" { … }`,
	}.read(path, src)
	if err != nil {
		return nil, err
	}
	if len(blocks) > 1 {
		first := blocks[0].DefRange().Start.Line
		return nil, hclfile.Problems{hclfile.At(blocks[1].DefRange(), "a file may hold only one node pool; the first is on line %d", first)}.Err()
	}
	pool, name := &structs.NodePool{}, blocks[0].Labels[0]
	d.Block(blocks[0], pool, structs.ChildPath("", "node_pool", name, -1))
	pool.Name = name
	return pool, d.Problems().Err()
}

// nodePoolOfJSON reads {"node_pool": {"NAME": {…}}}, which is the HCL in JSON, or a pool as the API has it.
func nodePoolOfJSON(src []byte) (*structs.NodePool, error) {
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(src, &whole); err != nil {
		return nil, fmt.Errorf("bad JSON: %w", err)
	}
	inner, isHCL := whole["node_pool"]
	if !isHCL {
		pool := &structs.NodePool{}
		for key := range whole {
			switch key {
			case "Name", "Description", "Meta", "NodeIdentityTTL", "SchedulerConfiguration", "CreateIndex", "ModifyIndex":
			default:
				return nil, fmt.Errorf(`unknown key %q: write {"node_pool": {"NAME": {…}}}, or the pool as the API has it`, key)
			}
		}
		return pool, json.Unmarshal(src, pool)
	}
	var pools map[string]json.RawMessage
	if err := json.Unmarshal(inner, &pools); err != nil {
		return nil, fmt.Errorf("node_pool: %w", err)
	}
	if len(whole) != 1 || len(pools) != 1 {
		return nil, errors.New(`must hold one node pool, and nothing else: {"node_pool": {"NAME": {…}}}`)
	}
	var read struct {
		Description     string            `json:"description"`
		Meta            map[string]string `json:"meta"`
		NodeIdentityTTL string            `json:"node_identity_ttl"`
		SchedulerConfig *struct {
			Algorithm        string `json:"scheduler_algorithm"`
			Oversubscription *bool  `json:"memory_oversubscription_enabled"`
		} `json:"scheduler_config"`
	}
	pool := &structs.NodePool{}
	for name, body := range pools { // there is one
		dec := json.NewDecoder(bytes.NewReader(body))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&read); err != nil {
			return nil, fmt.Errorf("node_pool %q: %w", name, err)
		}
		pool.Name = name
	}
	pool.Description, pool.Meta = read.Description, read.Meta
	if c := read.SchedulerConfig; c != nil {
		pool.SchedulerConfiguration = &structs.NodePoolSchedulerConfiguration{SchedulerAlgorithm: c.Algorithm, MemoryOversubscriptionEnabled: c.Oversubscription}
	}
	if text := read.NodeIdentityTTL; text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			return nil, fmt.Errorf("node_pool %q: node_identity_ttl: %w", pool.Name, err)
		}
		pool.NodeIdentityTTL = d
	}
	return pool, nil
}

func nodePoolInit() spec {
	return initBoth("Write an example node pool file", "gpu.nomad.hcl", "node pool specification", "pool.nomad", examples.NodePool, examples.NodePoolJSON, "short")
}
