package lang

// zhRestored are the sentences about a ledger that was put back to an earlier state.
var zhRestored = map[string]string{
	// cmd/daybook/restore.go
	"ledger %s knows nothing of what happened after %s: what may happen once only is frozen.":   "账本%s不知道%s之后发生了什么：只能发生一次的工作已冻结。",
	"a PostgreSQL ledger is restored with PostgreSQL's own tools":                               "PostgreSQL 账本用 PostgreSQL 自己的工具恢复",
	"restore it, and before a serve is started say so: daybook db restore --by-hand --reason …": "恢复之后、启动 serve 之前说明一声：daybook db restore --by-hand --reason …",
	"%s is the ledger itself": "%s就是账本本身",
	"name a backup":           "请给出一个备份",
	"%s is a backup of ledger %s, and %s is ledger %s":                                                             "%s是账本%s的备份，而%s是账本%s",
	"another ledger has another place: name it with --db":                                                          "另一个账本有另一个位置：用 --db 指明",
	"%s: %s of ledger %s, last written %s, takes the place of %s":                                                  "%s：%s，账本%s，最后写入于%s，将取代%s",
	"the file that is there cannot be read: it is kept as it is":                                                   "现有的文件无法读取：原样保留",
	"what happened since then the ledger will not know: what may happen once only is frozen until that is settled": "此后发生的事账本将不知道：核定之前，只能发生一次的工作都会冻结",
	"%s cannot be used":                                                 "%s无法使用",
	"name a file that daybook db backup has made":                       "请给出由 daybook db backup 生成的文件",
	"there is no backup %s":                                             "没有备份%s",
	"the backup has schema %d, newer than this program, which knows %d": "备份的表结构版本是%d，比本程序（%d）新",
	"the log of %s could not be folded":                                 "%s的日志无法并入文件",
	"somebody works on the ledger %s":                                   "有程序正在使用账本%s",
	"stop serve, and whatever else has it open, and try again":          "停止 serve 和其他打开它的程序，然后再试",
	"put the backup in the place of %s":                                 "用备份取代%s",
	"--since and --reason are for --by-hand":                            "--since 和 --reason 只用于 --by-hand",
	"of a backup the ledger itself knows how far it goes":               "备份里的账本自己知道它记到何时",
	"why, for the record; with --by-hand":                               "原因，用于记录；与 --by-hand 一起使用",
	"a ledger that was put back":                                        "账本被恢复到较早的状态",
	"this ledger was put back to an earlier state: what may happen once only is frozen until what is unknown is settled": "账本被恢复到较早的状态：未知的结果核定之前，只能发生一次的工作都会冻结",
	"db restore":                                   "恢复账本",
	"the file that was there is kept as %s":        "原来的文件保留为%s",
	"Put a backup in the place of a SQLite ledger": "用备份取代 SQLite 账本",
	"The backup is checked, the file that is there is kept beside it, and nobody may work on the ledger meanwhile. The\nledger knows nothing of what happened after the backup was made. So what may happen once only is frozen, until\nprobes or a person have said what happened.\n\nA ledger that was put back by other means, such as those of PostgreSQL, is found by what serve has kept beside it or\non this host. Where there is none of that, as on a new machine, --by-hand says so.": "先检查备份，再把现有的文件留在旁边；期间谁也不能使用账本。账本不知道备份之后发生了什么，\n所以只能发生一次的工作会冻结，直到核实或由人说明发生了什么。\n\n用其他办法（例如 PostgreSQL 的工具）恢复的账本，由 serve 留在文件旁边或本机上的记录发现。\n没有这种记录时，例如在新机器上，用 --by-hand 说明。",
	"the ledger was put back by other means: say so, and change nothing else":                   "账本已用其他办法恢复：只作说明，不改动别的",
	"with --by-hand: the last instant that the copy surely knows, such as 2026-10-26T02:00:00Z": "与 --by-hand 一起使用：副本确实知道的最后时刻，例如 2026-10-26T02:00:00Z",

	// control/restored.go
	"settle %s from before it, each as listed, then:  %s": "先逐一处理恢复之前的%s（如上所列），然后：  %s",
	"%d unknown outcomes": "%d个未知结果",
	"%s from before it are being settled: a serve that has their jobs asks the far sides. Then:  %s": "恢复之前的%s正在核定：有这些任务的 serve 会询问对方系统。然后：  %s",
	"all that was in it is settled:  %s   (what is held goes through its probes first)":              "账本里原有的都已核定：  %s   （被冻结的会先经过核实）",
	"%s is yet to come": "%s还没有到",
	"name the last instant that the ledger surely knows":                                                                           "请给出账本确实知道的最后时刻",
	"nodes write to this ledger: its last sign of life says nothing":                                                               "有节点正在写这个账本：它最后的心跳说明不了什么",
	"say how far the copy that was put back goes: --since 2026-10-26T02:00:00Z":                                                    "请说明恢复的副本记到何时：--since 2026-10-26T02:00:00Z",
	"another has just said so":                                                                                                     "刚刚已有人说明过",
	"held: the ledger was put back and knows nothing of what happened from %s to %s: %s. What may happen once only does not start": "已冻结：账本被恢复到较早的状态，不知道从%s到%s发生了什么：%s。只能发生一次的工作不会启动",

	// engine/witness.go
	"the ledger %s is empty, and another stood here that was at work until %s":                             "账本%s是空的，而这里原来有另一个账本，一直工作到%s",
	"put it back: daybook db restore FILE; to begin anew, where nothing that was done is known, remove %s": "把它放回来：daybook db restore FILE；确实要从头开始（做过的一概不知）时，删除%s",
	"the file of the ledger %s was written over while it was worked on: what is in it is mixed":            "账本的文件%s在使用时被覆盖：里面的内容已经混在一起",
	"put a whole copy in its place: daybook db restore FILE":                                               "用完整的副本取代它：daybook db restore FILE",

	// store/lapses.go
	"the ledger does not know of what it acknowledged":                                                             "账本不知道它确认过的内容",
	"%s from before the ledger was put back wait for a person":                                                     "账本恢复之前的%s要等人处理",
	"daybook status lists them, each with what to do; then end the freeze":                                         "daybook status 逐一列出并说明怎么做；然后再解除冻结",
	"%s from before the ledger was put back are not settled yet":                                                   "账本恢复之前的%s还没有核定",
	"a daybook serve with their jobs asks the far sides, which starts nothing: daybook run list --state retryable": "有这些任务的 daybook serve 会询问对方系统，不会启动任何工作：daybook run list --state retryable",
}
