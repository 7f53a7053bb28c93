// Package config reads daybook.yaml: one strict file, in which every name, type and reference is checked before anything
// starts. It tells all faults of a file at once, each with its place and its remedy, and never prints a secret. The
// command line calls it; it opens no ledger and starts nothing.
//
// Where to find what: file.go (what a file says), parse.go (how it is read), yaml.go and node.go (the text and its tree),
// names.go (which names there are), top.go, job.go and retry.go (what they mean), warn.go (what is allowed and
// surprising), fault.go (faults and how they are shown), duration.go, secret.go and database.go (values).
package config
