package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/config"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/engine"
	"github.com/daybook-run/daybook/store"
)

func newDB(a *app) *cobra.Command {
	return noun("db", textDB, newDBMigrate(a), newDBBackup(a), newDBInfo(a), newDBPrune(a), newDBRestore(a))
}

func newDBMigrate(a *app) *cobra.Command {
	var script, dry bool
	cmd := &cobra.Command{
		Use: "migrate", Short: textDBMigrate, Long: textDBMigrateLong, Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch ctx := cmd.Context(); {
			case script:
				return a.migrationScript(ctx)
			case dry:
				return a.migrationPlan(ctx)
			default:
				return a.migrate(ctx)
			}
		},
	}
	cmd.Flags().BoolVar(&script, "print", false, "print the statements and run none")
	writing(cmd, &dry)
	return cmd
}

// ledgerURL is the ledger that the call names.
func (a *app) ledgerURL() (string, error) {
	f, err := a.fileIfAny()
	if err != nil {
		return "", err
	}
	return a.databaseURL(f)
}

// newestSchema is the version of the schema this program makes.
func newestSchema(database string) (int, error) {
	for version := 0; ; version++ {
		before, err := store.Script(database, version)
		if err != nil {
			return 0, err
		}
		if !strings.Contains(before, "INSERT INTO daybook_migrations") {
			return version, nil
		}
	}
}

func databaseKind(text string) string {
	if strings.HasPrefix(text, "sqlite:") {
		return "sqlite"
	}
	return "postgres"
}

// schemaOf reads the version of a ledger's schema without opening the ledger, which refuses an older one. 0: there is none.
func (a *app) schemaOf(ctx context.Context, text string) (have int, err error) {
	if path, lite := strings.CutPrefix(text, "sqlite:"); lite {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return 0, nil
		}
	}
	db, err := openDB(text, false)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Read.Close(), closeOther(db)) }()
	if err := db.Read.QueryRowContext(ctx, "SELECT count(*) FROM daybook_migrations").Scan(&have); err != nil {
		var state interface{ SQLState() string }
		if strings.Contains(err.Error(), "no such table") || errors.As(err, &state) && state.SQLState() == "42P01" {
			return 0, nil
		}
		return 0, daybook.New(daybook.CodeUnavailable, "the ledger cannot be read").Because(err)
	}
	return have, nil
}

func (a *app) migrationScript(ctx context.Context) error {
	text, err := a.ledgerURL()
	if err != nil {
		return err
	}
	have, err := a.schemaOf(ctx, text)
	if err != nil {
		return err
	}
	newest, err := newestSchema(databaseKind(text))
	if err != nil {
		return err
	}
	if have >= newest {
		a.say("the ledger has schema %d: nothing to do", have)
		return nil
	}
	script, err := store.Script(databaseKind(text), have)
	if err != nil {
		return err
	}
	_, err = io.WriteString(a.Stdout, script)
	return err
}

// migrateJSON is daybook/migrate.v1.
type migrateJSON struct {
	Schema string `json:"schema"`
	From   int    `json:"from"`
	To     int    `json:"to"`
	DryRun bool   `json:"dry_run,omitempty"`
}

func (a *app) tellMigration(j migrateJSON) error {
	if a.flags.json {
		j.Schema = "daybook/migrate.v1"
		return a.printJSON(j)
	}
	text := daybook.Say("the ledger has schema %d, the newest this program knows", j.To)
	switch {
	case j.From == j.To:
	case j.DryRun && j.From == 0:
		text = daybook.Say("there is no ledger: it would be made with schema %d", j.To)
	case j.DryRun:
		text = daybook.Say("schema %d would become %d", j.From, j.To)
	case j.From == 0:
		text = daybook.Say("made the ledger with schema %d", j.To)
	default:
		text = daybook.Say("schema %d became %d", j.From, j.To)
	}
	if err := a.line("%s", text); err != nil {
		return err
	}
	if j.DryRun {
		a.dryRun()
	}
	return nil
}

func (a *app) migrationPlan(ctx context.Context) error {
	text, err := a.ledgerURL()
	if err != nil {
		return err
	}
	have, err := a.schemaOf(ctx, text)
	if err != nil {
		return err
	}
	newest, err := newestSchema(databaseKind(text))
	if err != nil {
		return err
	}
	if have > newest {
		return daybook.Invalid("the ledger has schema %d, newer than this program, which knows %d", have, newest).
			WithHint("use the newer version of daybook; an older one must not write here")
	}
	return a.tellMigration(migrateJSON{From: have, To: newest, DryRun: true})
}

func (a *app) migrate(ctx context.Context) error {
	text, err := a.ledgerURL()
	if err != nil {
		return err
	}
	have, err := a.schemaOf(ctx, text)
	if err != nil {
		return err
	}
	l, err := a.openAt(ctx, "cli", text, nil, true)
	if err != nil {
		return err
	}
	info, err := l.Control().Info(ctx)
	if err = errors.Join(err, l.Close()); err != nil {
		return err
	}
	return a.tellMigration(migrateJSON{From: have, To: info.Schema})
}

func newDBInfo(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "info", Short: textDBInfo, Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.dbInfo(cmd.Context()) },
	}
}

// infoJSON is daybook/ledger.v1.
type infoJSON struct {
	Schema   string    `json:"schema"`
	ID       string    `json:"id"`
	Database string    `json:"database"`
	Place    string    `json:"place"`
	Version  int       `json:"schema_version"`
	Created  time.Time `json:"created"`
	Sequence int64     `json:"sequence"`
	Bytes    int64     `json:"bytes"`
	WALBytes int64     `json:"wal_bytes"`
	Runs     int64     `json:"runs"`
	Serves   int       `json:"serves"`

	Nodes []control.NodeJSON `json:"nodes"` // alive, or not seen any more without having stopped
}

func (a *app) dbInfo(ctx context.Context) error {
	return a.withControl(ctx, func(l *ledger, c *control.Control) error {
		i, err := c.Info(ctx)
		if err != nil {
			return err
		}
		s, err := c.Status(ctx)
		if err != nil {
			return err
		}
		nodes, err := c.NodeViews(ctx)
		if err != nil {
			return err
		}
		nodes = slices.DeleteFunc(nodes, func(n control.NodeView) bool { return n.State == control.NodeStopped })
		j := infoJSON{"daybook/ledger.v1", i.ID, i.Database, place(l.url, i), i.Schema, i.CreatedAt, i.Sequence, i.Bytes, i.WALBytes, i.Runs, len(s.Serves),
			control.NewNodesJSON(nodes).Nodes}
		if a.flags.json {
			return a.printJSON(j)
		}
		loc := a.zoneOf("")
		w := bufio.NewWriter(a.Stdout)
		row := func(label, format string, args ...any) {
			fmt.Fprintf(w, "%s%s\n", pad(a.lang.Phrase(label), 10), oneLine(a.lang.F(format, args...)))
		}
		row("ledger", "%s", j.ID)
		row("database", "%s", j.Database)
		row("place", "%s", j.Place)
		row("schema", "%d", j.Version)
		row("created", "%s", stamp(j.Created, loc))
		row("sequence", "%d", j.Sequence)
		row("size", "%s and %s of log", size(j.Bytes), size(j.WALBytes))
		row("runs", "%d", j.Runs)
		row("serves", "%d alive", j.Serves)
		now := a.Now()
		for _, n := range nodes {
			seen := daybook.Say("seen %s ago", short(max(now.Sub(n.SeenAt), 0)))
			if n.State == control.NodeGone {
				seen = daybook.Say("not seen for %s", short(now.Sub(n.SeenAt)))
			}
			row("node", "%s pid %d, %s %s, zone data %s, clock %s, %s", n.Host, n.PID, n.Role, n.Version, n.TZData, clockText(n.Offset), seen)
			row("", "%s", n.ID)
			for _, f := range n.Findings {
				row("", "%s %s", a.mark("!"), f.What)
			}
		}
		return w.Flush()
	})
}

// clockText is how far the clock of a node is off the database's.
func clockText(off time.Duration) daybook.Text {
	if off.Abs() < 10*time.Millisecond {
		return daybook.Say("right")
	}
	return daybook.Say("off by %s", off.Round(time.Millisecond))
}

// place is where a ledger is, without secrets.
func place(text string, i daybook.LedgerInfo) string {
	if path, lite := strings.CutPrefix(text, "sqlite:"); lite {
		return path
	}
	if i.Place != "" {
		return i.Place
	}
	return config.Mask(text)
}

func size(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d KiB", (n+1023)/1024)
}

func newDBPrune(a *app) *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use: "prune", Short: textDBPrune, Long: textDBPruneLong, Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.dbPrune(cmd.Context(), dry) },
	}
	writing(cmd, &dry)
	return cmd
}

// Batches of a prune, and how many runs a dry one counts.
const (
	pruneBatch = 1000
	pruneCount = 1_000_000
)

func (a *app) dbPrune(ctx context.Context, dry bool) error {
	return a.withControl(ctx, func(l *ledger, _ *control.Control) error {
		keep := daybook.Retention{Log: engine.DefaultRetention}
		if l.file != nil {
			keep = daybook.Retention{Log: l.file.Retention.Log, LogRuns: l.file.Retention.LogRuns}
		}
		total := 0
		var err error
		if dry {
			total, err = l.Store().Prune(ctx, keep, a.Now(), pruneCount, true)
		} else {
			for n := pruneBatch; n >= pruneBatch && err == nil; total += n {
				n, err = l.Store().Prune(ctx, keep, a.Now(), pruneBatch, false)
			}
		}
		if err != nil {
			return err
		}
		if a.flags.json {
			return a.printJSON(map[string]any{"schema": "daybook/prune.v1", "runs": total, "log": span(keep.Log), "log_runs": keep.LogRuns, "dry_run": dry})
		}
		rule := daybook.Say("older than %s", spanText(keep.Log))
		if keep.LogRuns > 0 {
			rule = daybook.Say("%s, or beyond the newest %d of a job", rule, keep.LogRuns)
		}
		runs := daybook.Count(total, "%d run", "%d runs")
		told := daybook.Say("emptied the logs of %s %s; keys, states and letters stay", runs, rule)
		if dry {
			told = daybook.Say("would empty the logs of %s %s; keys, states and letters stay", runs, rule)
		}
		if err := a.line("%s", told); err != nil {
			return err
		}
		if dry {
			a.dryRun()
		}
		return nil
	})
}

// dumpLine is the line that backs a PostgreSQL ledger up, without secrets.
func dumpLine(text, file string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "pg_dump --format=custom --file=" + shellWord(file) + " DATABASE"
	}
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	q := u.Query()
	for name := range q {
		if strings.Contains(strings.ToLower(name), "passw") {
			q.Del(name)
		}
	}
	u.RawQuery = q.Encode()
	return fmt.Sprintf("pg_dump --format=custom --file=%s --dbname=%s", shellWord(file), shellWord(u.String()))
}
