package main

import (
	"cmp"
	"database/sql"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/config"
)

// A database server that dies without a word must not keep every loop waiting for as long as the kernel would: a
// connection is given up after about half a minute of silence.
var silence = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 4}

// dialTimeout bounds how long a connection to the database may take to be made.
const dialTimeout = 10 * time.Second

// pingAfter is how long a connection may rest and still be used unasked: the loops use theirs every few seconds, and need
// no statement before each statement.
const pingAfter = 30 * time.Second

// connLife is how long a connection is used: a server that took over behind a name is found by then, also by who only reads.
const connLife = 30 * time.Minute

// defaultPort is that of PostgreSQL.
const defaultPort = 5432

// postgresPlace is where the database of a URL is, and what can make it another ledger there: the same for all spellings of it.
func postgresPlace(url string) (string, error) {
	c, err := pgx.ParseConfig(url)
	if err != nil {
		return "", err
	}
	hosts := []string{hostPlace(c.Host, c.Port)}
	for _, f := range c.Fallbacks {
		hosts = append(hosts, hostPlace(f.Host, f.Port))
	}
	slices.Sort(hosts)
	place := strings.Join(slices.Compact(hosts), ",") + "/" + cmp.Or(c.Database, c.User)
	for _, name := range []string{"search_path", "options"} {
		if value := c.RuntimeParams[name]; value != "" {
			place += "_" + name + "=" + value
		}
	}
	return place, nil
}

// hostPlace is a host with its port, where that is not the usual one.
func hostPlace(host string, port uint16) string {
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		host = "localhost"
	}
	if !strings.HasPrefix(host, "/") { // that is a directory
		host = strings.ToLower(host)
	}
	if port != defaultPort {
		host += ":" + strconv.Itoa(int(port))
	}
	return host
}

// openPostgres makes a handle on the database of a URL; it connects when it is used. params are parameters of a session, in
// pairs, that are set where nothing stands in between.
func openPostgres(url string, params ...string) (*sql.DB, error) {
	c, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, daybook.Invalid("the database URL").Because(errors.New(config.Mask(err.Error())))
	}
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAliveConfig: silence, Control: boundUnsent}
	c.DialFunc = dialer.DialContext
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = dialTimeout
	}
	db := sql.OpenDB(newConnector(c, params))
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(8)
	db.SetConnMaxLifetime(connLife)
	return db, nil
}
