package lang

// zhDoors are the sentences of steps from outside and of drills.
var zhDoors = map[string]string{

	// once.go, step_desk.go, step.go
	"name it: --server with --token-file, or --db":                                                                               "写明账本：--server 加 --token-file，或 --db",
	"once: it stands in a job whose steps are kept by %s, and nothing names the ledger of this line":                             "once：它在一个任务里，该任务的步骤由%s记录，而没有写明这一行用哪个账本",
	"%s ended (exit %d), and the ledger does not know it":                                                                        "%s已结束（退出码%d），账本还不知道",
	"it is kept, and told with the end of the attempt":                                                                           "结果已保存，将随这次尝试的结束一起上报",
	"the next attempt does it again":                                                                                             "下次尝试会重做",
	"its outcome (%s) counts as unknown there: once the ledger is back, it is asked for, or say it by hand: daybook run resolve": "它的结果（%s）在账本中算作未知：账本恢复后会核实，或者手工写明：daybook run resolve",
	"this call for %s was answered before, and it has ended since":                                                               "对%s的这次请求早已回答，它此后已结束",

	// cmd/daybook/drill.go
	"%s did not end in time":                      "%s没有及时结束",
	"%s printed %d bytes: a count has at most %d": "%s输出了%d字节：计数最多%d字节",
	"%s printed nothing":                          "%s没有输出",
	"print a number, or the lines of the far side's book that are about the key in DAYBOOK_KEY": "输出一个数字，或对方账上与 DAYBOOK_KEY 中的键有关的各行",
	"DOORS":                   "入口",
	"TIMES":                   "次数",
	"NEW EFFECTS":             "新副作用",
	"SEEN":                    "发现",
	"nothing was drilled yet": "还没有做过演练",
	"--times %d: 1 to %d":     "--times %d：1 到%d",
	"%d times":                "%d次",
	"  recorded before: effects begun %d, attempts %d; after: %d, %d":       "  演练前的记录：开始过的副作用%d，尝试%d；演练后：%d，%d",
	"  counted before: %s; after: %s":                                       "  演练前计数：%s；演练后：%s",
	"Ask for a done key again, and expect nothing":                          "再次请求已完成的键，预期什么也不发生",
	"Ask for a done key again by several doors, and count what comes of it": "从多个入口再次请求已完成的键，并计数发生了什么",
	"By each door as often as --times says, the last time by all of them at once. What is recorded of the key before\nand after is compared, and what --count prints. The record is kept: exit 0 when nothing came of it, 3 when something did,\nwith an alert, 4 when the key is not done. A job that touches money is reminded of once a quarter.": "每个入口请求 --times 次，最后一次各入口同时请求。比较前后对该键的记录，以及 --count 的输出。\n结果会留档：什么也没发生时退出码 0，发生了则为 3 并告警，键未完成则为 4。涉及资金的任务每季度提醒一次。",
	"List what was drilled, newest first": "列出做过的演练，最新的在前",
	"business date of the done key":       "已完成的键的业务日期",
	"its label, where windows are no days (default: that of the latest fire already past)":                "窗口不是一天时写它的标签（默认：最近一次已过触发的窗口）",
	"doors to come by, of those that a trigger has":                                                       "使用的入口，即触发所用的入口",
	"how often by each of them":                                                                           "每个入口请求几次",
	"line for the shell that counts on the far side: it is run before and after, and must print the same": "在对方那边计数的 shell 命令行：前后各运行一次，输出必须相同",
	"of one job": "只看一个任务",

	// control/drills.go, drill.go
	"door %s is named twice":                                                                    "入口%s写了两次",
	"daybook run list --job %s --state done":                                                    "daybook run list --job %s --state done",
	"there is no run %s: only a key that is done is drilled":                                    "没有运行%s：只演练已完成的键",
	"%d drills at once: 1 to %d":                                                                "一次%d个演练：1 到%d",
	"%s  asked for %s by %s: nothing came of it":                                                "%s  从%[3]s请求了%[2]s：什么也没有发生",
	"%s  asked for %s by %s, and something came of it: %s":                                      "%s  从%[3]s请求了%[2]s，并且发生了动作：%[4]s",
	"the count failed: nothing was asked for":                                                   "计数失败：没有请求任何东西",
	"a drill of %d times: 1 to %d":                                                              "演练%d次：1 到%d次",
	"%q is not a door: one of %s":                                                               "%q不是入口：可选%s",
	"drill the key of what is done: %s":                                                         "请演练已完成的那个键：%s",
	"%s is %s: only a key that is done is drilled, since asking for another may start its work": "%s%s：只演练已完成的键，因为请求其他键可能会启动工作",
	"%s was done and is taken back: it answers for nothing any more":                            "%s完成后已被撤销：它不再代表任何结果",
	"drill another window":                                                                      "换一个窗口演练",
}
