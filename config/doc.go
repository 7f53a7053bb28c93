// Package config reads daybook.yaml: one strict file, in which every name, type and reference is checked before anything
// starts. It tells all faults of a file at once, each with its place and its remedy, and never prints a secret. The
// command line calls it; it opens no ledger and starts nothing.
//
// Where to find what: file.go (what a file says), parse.go (how it is read), yaml.go and node.go (the text and its tree),
// top.go, jobnames.go, http.go, retry.go and alerts.go (which names there are, what they mean, how they are read), names.go
// (names that there are not, or not yet), job.go (a job as a whole), warn.go (what is allowed and surprising), fault.go
// (faults and how they are shown), read.go, command.go, duration.go, secret.go and database.go (values), shape.go and
// schema.go (the JSON Schema and the reference, made of the same tables).
package config
