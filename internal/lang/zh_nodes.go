package lang

// zhNodes are the sentences about several machines on one PostgreSQL, and about a database that fails.
var zhNodes = map[string]string{
	// store/postgres.go, store/write.go
	"this server only lets read: a standby, or a primary that was made one; name all servers in the URL, with target_session_attrs=read-write": "这台服务器只读：它是备机，或主机已变成备机；请在 URL 里列出全部服务器，并加上 target_session_attrs=read-write",
	"a pooler in transaction mode keeps no prepared statements: add default_query_exec_mode=exec to the URL":                                   "事务模式的连接池不保留预备语句：请在 URL 里加上 default_query_exec_mode=exec",
	"make room on the disk of the database: what was recorded is safe, and serve goes on by itself":                                            "请给数据库的磁盘腾出空间：已记录的内容是安全的，serve 会自行继续",
	"the connection broke while it was written: it may be in the ledger":                                                                       "写入时连接断了：它可能已在账本里",
	"ask again once the database answers: what is in the ledger is answered from there, and not done twice":                                    "等数据库恢复后再问一次：账本里已有的会直接回答，不会做第二次",

	// control/doctortext.go, cmd/daybook/db.go
	"let a time service keep the clock of that machine: beyond 5 s it claims nothing":                                                                             "请用授时服务校准那台机器：偏差超过 5 秒，它就不领取任何运行",
	"load the newer file there: daybook serve takes it at SIGHUP or when it is started again":                                                                     "请在那里载入新文件：daybook serve 收到 SIGHUP 或重新启动时载入",
	"a pooler in transaction mode stands in between: nothing is lost, what other nodes make due starts within a second; a URL that leads past it makes it faster": "中间有事务模式的连接池：不会丢失任何内容，其他节点交来的运行一秒内开始；URL 绕过它会更快",
	"%d jobs are planned there no more, as another node loaded newer definitions":                                                                                 "有%d个任务不再由它安排，因为另一个节点载入了更新的定义",
	"node %s: %s":             "节点%s：%s",
	"node %s hears no NOTIFY": "节点%s收不到 NOTIFY",
	"seen %s ago":             "%s前见过",
	"not seen for %s":         "已有%s未见",
	"%s pid %d, %s %s, zone data %s, clock %s, %s": "%s，进程%d，%s %s，时区数据%s，时钟%s，%s",
	"node":      "节点",
	"right":     "准确",
	"off by %s": "偏差%s",

	// postgres/postgres.go
	"the handle was not opened with pgx": "这个句柄不是用 pgx 打开的",

	// cmd/daybook/ledger.go
	"the pooler in front of the database refuses a parameter of the URL: take it out, or name it in ignore_startup_parameters of the pooler": "数据库前面的连接池拒绝 URL 里的一个参数：请去掉它，或写进连接池的 ignore_startup_parameters",
}
