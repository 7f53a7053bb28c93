package lang

// zhImporter are the sentences of importer: what cannot be imported from a crontab or from systemd, and why. The file it
// writes is in English, as all files are.
var zhImporter = map[string]string{

	// cronfields.go
	"cron refuses it too":                                "cron 也不接受",
	"cron refuses it too: %d to %d":                      "cron 也不接受：应为%d到%d",
	"cron refuses it too: write the smaller value first": "cron 也不接受：先写较小的值",
	"cron refuses it too: write two ranges, such as 6-7,1 for the days from Saturday to Monday": "cron 也不接受：请写成两段，例如周六到周一写作 6-7,1",
	"%s %s has a step behind a single value":                                                    "%s %s在单个值后面带了步长",
	"crons differ on it: write %d-%d/%s if it meant every %s from there on":                     "各种 cron 的理解不同：如果意思是从那里起每隔%[4]s一次，请写作%[1]d-%[2]d/%[3]s",
	"%s %s: the step is no number from 1 on":                                                    "%s %s：步长不是从 1 起的数字",
	"write it as */5":                                                                           "写作 */5",
	"%s %s is outside %d to %d":                                                                 "%s %s不在%d到%d之间",
	"%s %q is no value":                                                                         "%s %q不是有效的值",
	"%s %s runs backwards":                                                                      "%s %s前大后小",
	"day of month %s and weekday %s: for cron both must match, as one begins with a star":       "日%s与星期%s：其中一个以星号开头，所以 cron 要求两者同时符合",
	"no form says that: keep the weekdays in the schedule, and test the day in the command":     "没有写法能表达：调度计划里只留星期，日期在命令里判断",
	"%s %s is drawn anew each time cron loads the table":                                        "%s %s在 cron 每次载入时重新抽取",
	"choose a day: a business date that is drawn is no date":                                    "请选定一天：抽出来的业务日期不算日期",

	// crontab.go
	"the command is missing behind the user %s":                                           "用户%s后面没有命令",
	"is it the table of a user? then leave --system out":                                  "这是用户自己的 crontab 吗？那就去掉 --system",
	"the command is missing":                                                              "没有命令",
	"the command is empty before the '%%'":                                                "“%%”之前的命令为空",
	"cron gives all behind the first '%%' to it as input; write \\%% for the sign itself": "cron 把第一个“%%”之后的内容都当作输入；要写百分号本身请用 \\%%",
	"a space stands behind the '-'":                                                       "“-”后面有空格",
	"leave it in the crontab, or give it to the machine's service manager":                "留在 crontab 里，或者交给机器的服务管理器",
	"%s is unknown to cron":                                                               "cron 不认识%s",
	"known are @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually":         "可用的有 @hourly、@daily、@midnight、@weekly、@monthly、@yearly、@annually",
	"the %s is missing":                                                                   "缺少%s",
	"a line has five fields and a command; comments stand on lines of their own":          "一行是五个字段加一条命令；注释要单独成行",

	// importer.go
	"it holds bytes that are not UTF-8":                         "其中有不是 UTF-8 的字节",
	"write the name in UTF-8, or put the command into a script": "用 UTF-8 写名字，或者把命令放进脚本",
	"it holds the character %U":                                 "其中有字符%U",
	"put the command into a script":                             "把命令放进脚本",
	"it holds a NUL byte":                                       "其中有 NUL 字节",
	"the file may be damaged or not be text":                    "文件可能已损坏，或者不是文本",
	"%q can be no user":                                         "%q不可能是用户名",

	// oncalendar.go, timer.go
	"OnCalendar=%s: %q cannot be read":                                        "OnCalendar=%s：无法读懂%q",
	"systemd-analyze calendar shows what systemd makes of it":                 "systemd-analyze calendar 会显示 systemd 怎么理解它",
	"OnCalendar=%s is no form of Daybook":                                     "Daybook 没有与 OnCalendar=%s对应的写法",
	"it does not fire in the next twenty years":                               "它在今后二十年内不会触发",
	"its next fires: %s; several lines, or a test in the command, may say it": "它接下来的触发时间：%s；也许可以写成几行，或者在命令里判断",
	"%s=%s is no distance that every can say":                                 "every 表达不了%s=%s这个间隔",
	"whole seconds, up to a year":                                             "应为整秒，最长一年",
	"%s says no time that comes again":                                        "%s没有会再次到来的时间",
	"what starts at boot stays with systemd; add OnCalendar= for the rest":    "开机启动的留给 systemd；其余的请加上 OnCalendar=",
	"%s is a template, and no instance of it stands here":                     "%s是模板，这里没有它的实例",
	"systemctl list-timers names the instances: copy it to the name of one":   "systemctl list-timers 会列出实例：把它复制成其中一个的名字",

	// service.go, units.go
	"it starts %s, and only services can be imported":               "它启动的是%s，只有 service 可以导入",
	"leave it with systemd":                                         "留给 systemd",
	"%s is not in %s":                                               "%s不在%s里",
	"systemctl cat %s shows where it is: copy it there":             "systemctl cat %s会显示它在哪里：复制到那个目录",
	"User=%s can be no user":                                        "User=%s不可能是用户名",
	"systemd refuses it too":                                        "systemd 也不接受",
	"%s has no ExecStart":                                           "%s没有 ExecStart",
	"there is nothing to run":                                       "没有可运行的命令",
	"a command is empty in %s":                                      "%s里有一条空命令",
	"the specifier %%%c cannot be filled in here":                   "这里无法填入说明符 %%%c",
	"put what systemd makes of it into the unit: systemctl show %s": "请把 systemd 得出的值写进单元：systemctl show %s",
	"an unknown escape, \\%c":                                       "未知的转义 \\%c",
	"a quote that is not closed":                                    "引号没有闭合",
}
