package lang

// zhDoors are the sentences of steps from outside and of drills.
var zhDoors = map[string]string{

	// once.go, step_desk.go, step.go
	"name it: --server with --token-file, or --db":                                                                               "写明账本：--server 加 --token-file，或 --db",
	"once: it stands in a job whose steps are kept by %s, and nothing names the ledger of this line":                             "once：它在一个任务里，该任务的步骤由%s记录，而没有写明这一行用哪个账本",
	"step %s ended (exit %d), and the ledger does not know it":                                                                   "步骤%s已结束（退出码%d），账本还不知道",
	"it is kept, and told with the end of the attempt":                                                                           "结果已保存，将随这次尝试的结束一起上报",
	"the next attempt does it again":                                                                                             "下次尝试会重做",
	"its outcome (%s) counts as unknown there: once the ledger is back, it is asked for, or say it by hand: daybook run resolve": "它的结果（%s）在账本中算作未知：账本恢复后会核实，或者手工写明：daybook run resolve",
	"this call for step %s was answered before, and the step has ended since":                                                    "对步骤%s的这次请求早已回答，步骤此后已结束",
}
