package main

import (
	"cmp"
	"errors"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/config"
)

// missingSecrets says which jobs of a file need a secret that cannot be looked up now. Their attempts would not begin, at two
// in the morning.
func (a *app) missingSecrets(f *config.File) []error {
	var missing []error
	for i := range f.Jobs {
		j := &f.Jobs[i]
		if _, err := j.Environment(a.vault()); err != nil {
			err = cmp.Or(errors.Unwrap(err), err)
			missing = append(missing, daybook.New(daybook.CodeOf(err), "job %s needs a secret that is not there", j.Name).Because(err))
		}
	}
	return missing
}

// warnOfSecrets tells of them when serve starts: the other jobs run all the same.
func (a *app) warnOfSecrets(f *config.File) {
	for _, err := range a.missingSecrets(f) {
		a.report(err)
	}
}
