// Package examples holds what daybook init --example writes: the six-job file and a shop to call. It decides nothing; the
// command line reads it.
package examples

import "embed"

// Six is the file with the six jobs, daybook.yaml.
//
//go:embed daybook.yaml
var Six []byte

// Schema is the JSON Schema by which editors know the file, daybook.schema.json.
//
//go:embed daybook.schema.json
var Schema []byte

// Saas is the shop: a server, scripts, a README, below saas.
//
//go:embed saas
var Saas embed.FS
