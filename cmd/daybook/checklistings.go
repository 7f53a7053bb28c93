package main

import (
	"context"
	"slices"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/config"
	"github.com/daybook-run/daybook/fanout"
	"github.com/daybook-run/daybook/internal/userdb"
)

// tryListings lets the databases of the user read the queries of listings, without a row of theirs: what a query has wrong is a
// fault, a database that cannot be asked from here a warning.
func (a *app) tryListings(ctx context.Context, f *config.File) (faults config.Errors, warnings []config.Fault) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	for i := range f.Jobs {
		j := &f.Jobs[i]
		if j.Subjects.SQL == "" {
			continue
		}
		l, err := f.Subjects(j, a.vault())
		if err != nil {
			warnings = append(warnings, config.NewFault(f.Path, j.Line, j.Column, notTried(j.Name, err)))
			continue
		}
		from := fanout.Source{SQL: l.SQL, DSN: l.DSN}.Name()
		columns, asked, err := columnsOf(ctx, l)
		switch err = userdb.Masked(err, l.DSN); {
		case err != nil && !asked:
			warnings = append(warnings, config.NewFault(f.Path, j.Line, j.Column, notTried(j.Name, daybook.Invalid("%s", from).Because(err))))
		case err != nil:
			faults = append(faults, config.NewFault(f.Path, j.Line, j.Column, daybook.Invalid("job %s: its listing from %s", j.Name, from).Because(err).
				WithHint("the query is a SELECT that this database understands, and that writes nothing")))
		case !slices.Contains(columns, "subject"):
			faults = append(faults, config.NewFault(f.Path, j.Line, j.Column, daybook.Invalid("job %s: its listing from %s has no column subject", j.Name, from).
				WithHint("name one with AS: SELECT id AS subject")))
		case slices.Contains(columns, "zone") && j.Zone != daybook.ZoneOfSubject:
			warnings = append(warnings, config.NewFault(f.Path, j.Line, j.Column, daybook.Invalid("job %s: the column zone of its listing is not used", j.Name).
				WithHint("add zone: subject to the job, or leave the column out")))
		}
	}
	return faults, warnings
}

func notTried(job string, err error) *daybook.Error {
	return daybook.Invalid("job %s: its listing was not tried", job).Because(err).WithHint("run daybook check where its database is")
}

// columnsOf returns the columns of a listing. asked: it is the query that is at fault, and not the way to the database.
func columnsOf(ctx context.Context, l daybook.Listing) (columns []string, asked bool, err error) {
	kind, err := userdb.KindOf(l.DSN)
	if err != nil {
		return nil, false, err
	}
	db, err := openUserDB(l.DSN)
	if err != nil {
		return nil, false, err
	}
	defer db.Close()
	if err := db.PingContext(ctx); err != nil {
		return nil, false, err
	}
	columns, err = userdb.Columns(ctx, db, kind, l.SQL)
	return columns, err == nil || ctx.Err() == nil, err
}
