package main

import (
	"context"
	"net/url"
	"os"
	"path/filepath"

	"github.com/daybook-run/daybook"
)

// gateway stands for a payment service. It keeps a book of its own, a page a charge, which outlives everything.
type gateway struct {
	dir   string
	after func(ctx context.Context) error // called when the charge is in the book and its answer is on its way; may be nil
}

// charge takes the money. It is a service without mercy: whoever asks twice is charged twice.
func (g *gateway) charge(ctx context.Context, wireKey, date string) (id string, err error) {
	if err := os.MkdirAll(g.dir, 0o700); err != nil {
		return "", daybook.NotDone(err)
	}
	page, err := os.CreateTemp(g.dir, url.PathEscape(wireKey)+" *")
	if err != nil {
		return "", daybook.NotDone(err)
	}
	if _, err := page.WriteString(date + "\n"); err != nil {
		return "", err
	}
	if err := page.Close(); err != nil {
		return "", err
	}
	if g.after != nil {
		if err := g.after(ctx); err != nil {
			return "", err
		}
	}
	return filepath.Base(page.Name()), nil
}

// find is the probe: does the book have a charge under this wire key?
func (g *gateway) find(_ context.Context, wireKey string) (string, daybook.Answer, error) {
	pages, err := g.pages(wireKey)
	if err != nil || len(pages) == 0 {
		return "", daybook.No, err
	}
	return pages[0], daybook.Yes, nil
}

// pages lists the charges under a wire key; under an empty one, all.
func (g *gateway) pages(wireKey string) ([]string, error) {
	if wireKey != "" {
		wireKey = url.PathEscape(wireKey) + " "
	}
	paths, err := filepath.Glob(filepath.Join(g.dir, wireKey+"*"))
	for i, p := range paths {
		paths[i] = filepath.Base(p)
	}
	return paths, err
}
