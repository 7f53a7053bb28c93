package main

// The binary brings the SQLite driver; the library takes its caller's handles, as two copies of SQLite in one process
// break each other's locks.
import (
	_ "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

const sqliteVersion = sqlite3.SQLITE_VERSION
