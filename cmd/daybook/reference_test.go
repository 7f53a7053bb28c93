package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/spf13/pflag"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/alert"
	"github.com/daybook-run/daybook/config"
	"github.com/daybook-run/daybook/control"
	"github.com/daybook-run/daybook/httpapi"
	"github.com/daybook-run/daybook/internal/golden"
	"github.com/daybook-run/daybook/internal/lang"
	"github.com/daybook-run/daybook/runner"
)

// The reference is made of what the program is made of: the tables of the file, the tree of commands, the table of triggers
// against states, and what runners make of each answer. A change of one of them is a change of these pages:
// go test ./cmd/daybook -run Reference -update.

// tongue says texts in the language of a page.
type tongue struct{ lang.Printer }

// of chooses between two texts.
func (l tongue) of(english, chinese string) string {
	if l.Lang() == lang.Chinese {
		return chinese
	}
	return english
}

// unwrapped joins the lines of a text for the terminal to paragraphs.
func unwrapped(s string) string {
	var b strings.Builder
	text := []rune(s)
	for i, r := range text {
		switch {
		case r != '\n':
			b.WriteRune(r)
		case i > 0 && text[i-1] == '\n' || i+1 < len(text) && text[i+1] == '\n':
			b.WriteByte('\n') // between paragraphs
		case i+1 < len(text) && !fullWidth(text[i-1]) && !fullWidth(text[i+1]) && !(unicode.Is(unicode.Han, text[i-1]) && unicode.Is(unicode.Han, text[i+1])):
			b.WriteByte(' ')
		}
	}
	return b.String()
}

const madeOf = "<!-- Made by go test ./cmd/daybook -run Reference -update; what is written here is lost. -->\n"

func TestReference(t *testing.T) {
	t.Parallel()
	pages := []struct {
		name string
		make func(*testing.T, tongue) string
	}{
		{"README.md", referenceIndex}, {"file.md", fileReference}, {"commands.md", commandsReference}, {"codes.md", codesReference}, {"environment.md", environmentReference},
		{"triggers.md", triggersReference}, {"alerts.md", alertsReference}, {"api.md", apiReference}, {"limits.md", limitsReference},
	}
	for _, name := range lang.Languages {
		dir, l := docsRoot+"docs/reference/", tongue{lang.For(name)}
		if name == lang.Chinese {
			dir = docsRoot + "docs/zh-CN/reference/"
		}
		for _, p := range pages {
			golden.Equal(t, dir+p.name, p.make(t, l))
		}
		for _, file := range entries(t, dir) {
			if !slices.ContainsFunc(pages, func(p struct {
				name string
				make func(*testing.T, tongue) string
			}) bool {
				return p.name == file
			}) {
				t.Errorf("%s%s is made by nothing", dir, file)
			}
		}
	}
}

func entries(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// rows writes a table.
func rows(head []string, list [][]string) string {
	var b strings.Builder
	write := func(cells []string) {
		for _, c := range cells {
			b.WriteString("| " + strings.ReplaceAll(strings.ReplaceAll(c, "|", `\|`), "\n", " ") + " ")
		}
		b.WriteString("|\n")
	}
	write(head)
	b.WriteString(strings.Repeat("|---", len(head)) + "|\n")
	for _, r := range list {
		write(r)
	}
	return b.String()
}

func code1(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

func referenceIndex(_ *testing.T, l tongue) string {
	return l.of("# Reference\n", "# 参考\n") + "\n" + madeOf + "\n" + strings.Join([]string{
		l.of("- [The file](file.md): every name of `daybook.yaml`", "- [配置文件](file.md)：`daybook.yaml` 的全部名称"),
		l.of("- [Commands](commands.md): every command and flag", "- [命令](commands.md)：全部命令和选项"),
		l.of("- [Codes](codes.md): exit codes of `daybook`, and how the answer of a job is read", "- [代码](codes.md)：`daybook` 的退出码，以及任务的答复怎样解读"),
		l.of("- [Environment and headers](environment.md): what a job is given", "- [环境变量和请求头](environment.md)：任务得到什么"),
		l.of("- [Triggers and states](triggers.md): what asking again does", "- [触发与状态](triggers.md)：再问一次会怎样"),
		l.of("- [Alerts](alerts.md): kinds and channels", "- [告警](alerts.md)：种类和渠道"),
		l.of("- [HTTP API](api.md): the routes of `serve --listen`", "- [HTTP API](api.md)：`serve --listen` 的路由"),
		l.of("- [Limits](limits.md)", "- [限制](limits.md)"),
	}, "\n") + "\n"
}

// fileReference lists every name of the file.
func fileReference(_ *testing.T, l tongue) string {
	var b strings.Builder
	b.WriteString(l.of("# The file\n", "# 配置文件\n") + "\n" + madeOf + "\n")
	b.WriteString(l.of("One strict YAML file, `daybook.yaml`. A name that is not here, or stands twice, is an error with its place and the nearest right word. Durations are written `90s`, `10m`, `26h`, `7d`. "+
		"Secrets are references, `\"file:/path\"` or `\"${NAME}\"`. `daybook check` reads the file and starts nothing; `daybook check --schema` prints the JSON Schema of it for editors.\n",
		"一个严格的 YAML 文件：`daybook.yaml`。这里没有的名称，或者写了两次的名称，都是错误，会给出位置和最接近的正确写法。时长写作 `90s`、`10m`、`26h`、`7d`。"+
			"密钥只能是引用：`\"file:/path\"` 或 `\"${NAME}\"`。`daybook check` 只读文件，什么也不启动；`daybook check --schema` 打印供编辑器使用的 JSON Schema。\n"))
	for _, s := range config.Reference() {
		title := "`" + s.Path + "`"
		if s.Path == "" {
			title = l.of("The top", "顶层")
		}
		b.WriteString("\n## " + title + "\n\n")
		var list [][]string
		for _, n := range s.Names {
			otherwise := l.Phrase(n.Default)
			if n.Default == "required" {
				otherwise = l.of("required", "必填")
			}
			list = append(list, []string{code1(n.Word), l.Phrase(n.Type), otherwise, l.Phrase(n.Meaning)})
		}
		b.WriteString(rows([]string{l.of("Name", "名称"), l.of("Type", "类型"), l.of("Default", "默认值"), l.of("Meaning", "含义")}, list))
	}
	return b.String()
}

// commandsReference lists every command that can be used, with its flags.
func commandsReference(_ *testing.T, l tongue) string {
	var b strings.Builder
	root := (&app{}).root()
	b.WriteString(l.of("# Commands\n", "# 命令\n") + "\n" + madeOf + "\n")
	b.WriteString(l.of("Data goes to stdout, talk to stderr. `daybook man DIR` writes the same as manual pages, `daybook completion SHELL` completes commands, job names and keys.\n",
		"数据写到标准输出，提示写到标准错误。`daybook man DIR` 把同样的内容写成手册页，`daybook completion SHELL` 提供命令、任务名和键的补全。\n"))
	for _, cmd := range tree(root) {
		if cmd.HasSubCommands() && cmd.HasParent() {
			continue // its verbs follow
		}
		b.WriteString("\n## `" + cmd.CommandPath() + "`\n\n" + l.Phrase(cmd.Short) + l.of(".", "。") + "\n")
		if cmd.HasParent() {
			b.WriteString("\n```\n" + cmd.UseLine() + "\n```\n")
		}
		if cmd.Long != "" {
			b.WriteString("\n" + unwrapped(l.Phrase(cmd.Long)) + "\n")
		}
		flags := cmd.LocalFlags()
		if !cmd.HasParent() {
			b.WriteString("\n" + l.of("These flags are those of every command:", "这些选项适用于所有命令：") + "\n")
		}
		if list := flagRows(l, flags); len(list) > 0 {
			b.WriteString("\n" + rows([]string{l.of("Flag", "选项"), l.of("Meaning", "含义")}, list))
		}
		if cmd.Example != "" {
			b.WriteString("\n```sh\n" + unindent(cmd.Example) + "\n```\n")
		}
	}
	return b.String()
}

func flagRows(l tongue, flags *pflag.FlagSet) (list [][]string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		translated := *f
		translated.Usage = l.Phrase(f.Usage)
		name, usage := (&app{lang: l.Printer}).flagText(&translated)
		list = append(list, []string{code1(name), usage})
	})
	return list
}

func unindent(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "  ")
	}
	return strings.Join(lines, "\n")
}

// outcomes of an attempt, with what follows.
var outcomes = []struct {
	result                             daybook.Result
	english, chinese                   string
	repeatable, repeatableZh, once, zh string
}{
	{daybook.ResultDone, "done", "完成", "done", "完成", "done", "完成"},
	{daybook.ResultNotDone, "it did not happen; later it may", "没有发生，以后可能成功", "tried again", "重试", "tried again, same wire key", "重试，沿用对外幂等键"},
	{daybook.ResultPermanent, "it did not happen, and will not", "没有发生，再试也不会", "dead letter", "死信", "dead letter; its replay has the next wire key", "死信；重放时用下一个对外幂等键"},
	{daybook.ResultUnclear, "it failed, and whether it happened is open", "失败了，是否发生不清楚", "tried again", "重试", "probe, else memory, else a person", "先核实，再看对方的记忆，最后由人决定"},
	{daybook.ResultUnknown, "nobody reported how it ended", "没有人报告结果", "tried again", "重试", "as unclear", "同“不清楚”"},
	{daybook.ResultBusy, "the far side is at work under this wire key", "对方正在处理这个对外幂等键", "asked again, no failure counted", "再问一次，不计失败", "the same while the far side remembers, else as unclear", "在对方记得的时间内同左，否则同“不清楚”"},
}

// codesReference is read off the runners: each exit code and each HTTP status is answered once, and what came of it listed.
func codesReference(t *testing.T, l tongue) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(l.of("# Codes\n", "# 代码\n") + "\n" + madeOf + "\n## " + l.of("Exit codes of `daybook`", "`daybook` 的退出码") + "\n\n")
	var list [][]string
	for _, e := range exitCodes {
		list = append(list, []string{e.Name, l.Say(e.Text)})
	}
	b.WriteString(rows([]string{l.of("Code", "代码"), l.of("Meaning", "含义")}, list))
	b.WriteString("\n## " + l.of("How the answer of a job is read", "任务的答复怎样解读") + "\n\n")
	exits, statuses := map[daybook.Result][]int{}, answers(t)
	for n := range 256 {
		r := runner.ResultOfExit(n, nil)
		exits[r] = append(exits[r], n)
	}
	list = nil
	for _, o := range outcomes {
		exit, status := spans(exits[o.result]), spans(statuses[o.result])
		switch o.result {
		case daybook.ResultNotDone:
			status += l.of("; the connection could not be made", "；连接没有建立")
		case daybook.ResultPermanent:
			exit += l.of("; the command could not be started", "；命令无法启动")
		case daybook.ResultUnclear:
			exit = l.of("any other", "其他")
			status += l.of("; an answer that cannot be read", "；读不懂的答复")
		case daybook.ResultUnknown:
			exit = l.of("ended by a signal, or at `timeout`", "被信号结束，或到了 `timeout`")
			status += l.of("; cut off or timed out after sending; after 202 no report came", "；发送之后断线或超时；202 之后没有收到报告")
		}
		list = append(list, []string{exit, status, code1(string(o.result)), l.of(o.english, o.chinese), l.of(o.repeatable, o.repeatableZh), l.of(o.once, o.zh)})
	}
	b.WriteString(rows([]string{l.of("Exit code", "退出码"), l.of("HTTP status", "HTTP 状态码"), l.of("Outcome", "结果"), l.of("It means", "意思"), "`effects: repeatable`", "`effects: once`"}, list))
	b.WriteString("\n" + l.of("`retry: {permanent_exit: […]}` and `permanent_status` name further codes that mean *it will not*. A job may also say its outcome in words, which then count: "+
		"a command writes one line of JSON into `$DAYBOOK_RESULT_FILE`, an HTTP job answers it.\n",
		"`retry: {permanent_exit: […]}` 和 `permanent_status` 可以指定更多表示“再试也不会”的代码。任务也可以直接写明结果，以写明的为准：命令往 `$DAYBOOK_RESULT_FILE` 写一行 JSON，HTTP 任务在答复里给出。\n"))
	b.WriteString("\n```json\n" + `{"outcome": "not_done", "retry_after": "90s", "effects": {"charges": 20}, "result": {"id": "ch_9a1"}, "message": "the gateway is busy"}` + "\n```\n")
	return b.String()
}

// answers asks the HTTP runner what it makes of each status.
func answers(t *testing.T) map[daybook.Result][]int {
	t.Helper()
	status := 0
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	defer far.Close()
	found := map[daybook.Result][]int{}
	for status = 200; status < 600; status++ {
		if status == http.StatusAccepted { // the work goes on
			continue
		}
		j := &daybook.Job{Name: "ask", HTTP: &daybook.HTTPCall{URL: far.URL}}
		h, err := runner.For(j, runner.Options{HTTP: runner.HTTP{Clock: time.Now}})
		if err != nil {
			t.Fatal(err)
		}
		w := daybook.Window{Label: "2026-10-26", Date: "2026-10-26"}
		out := h.Run(context.Background(), daybook.Order{Run: &daybook.Run{Key: "ask:2026-10-26", Job: "ask", Window: w}, Job: j, Attempt: 1, Fence: 1, WireKey: "ask:2026-10-26"})
		found[out.Result] = append(found[out.Result], status)
	}
	return found
}

// spans writes numbers in order: 64–66, 77.
func spans(list []int) string {
	var parts []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		switch j - i {
		case 0:
			parts = append(parts, fmt.Sprint(list[i]))
		case 1:
			parts = append(parts, fmt.Sprint(list[i]), fmt.Sprint(list[j]))
		default:
			parts = append(parts, fmt.Sprintf("%d–%d", list[i], list[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ", ")
}

// given are the variables of a command and the headers of an HTTP job that say the same.
var given = []struct{ variable, header, english, chinese string }{
	{"DAYBOOK_KEY", "Daybook-Key", "the key of the run", "这次运行的幂等键"},
	{"DAYBOOK_WIRE_KEY", "Idempotency-Key", "the idempotency key for the far side: the key, after a definite no `key#run@2`", "给对方的幂等键：即键本身，得到明确的否之后为 `key#run@2`"},
	{"DAYBOOK_JOB", "Daybook-Job", "the job", "任务"},
	{"DAYBOOK_SUBJECT", "Daybook-Subject", "the business object inside the window, if there is one", "窗口内的业务对象（如果有）"},
	{"DAYBOOK_WINDOW", "Daybook-Window", "the label of the window", "业务窗口的标签"},
	{"DAYBOOK_BUSINESS_DATE", "Daybook-Business-Date", "the first local date of the window", "窗口的第一个当地日期"},
	{"DAYBOOK_WINDOW_START", "Daybook-Window-Start", "where the window begins, RFC 3339", "窗口的开始，RFC 3339"},
	{"DAYBOOK_WINDOW_END", "Daybook-Window-End", "where it ends, exclusive", "窗口的结束，不含"},
	{"DAYBOOK_TRIGGER", "Daybook-Trigger", "who started the run: schedule, manual, api …", "由谁开始：schedule、manual、api 等"},
	{"DAYBOOK_ATTEMPT", "Daybook-Attempt", "the number of this try", "第几次尝试"},
	{"DAYBOOK_FENCE", "Daybook-Fence", "rises with every claim: guard your own writes with it", "每次认领都会增大：可用来防护你自己的写入"},
	{"DAYBOOK_PAYLOAD_FILE", "", "file with the JSON that the caller gave; of an HTTP job it stands in the body", "调用者给出的 JSON 所在的文件；HTTP 任务则在请求体里"},
	{"DAYBOOK_RESULT_FILE", "", "file to write the outcome to", "写入结果的文件"},
	{"TRACEPARENT", "Traceparent", "one trace id a run, a new parent id for each try", "每次运行一个追踪号，每次尝试一个新的父级号"},
}

// environmentReference lists what a job is given. Both columns are compared with what a command and a request really get.
func environmentReference(t *testing.T, l tongue) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(l.of("# Environment and headers\n", "# 环境变量和请求头\n") + "\n" + madeOf + "\n## " + l.of("What a job is given", "任务得到什么") + "\n\n")
	var list [][]string
	var variables, headers []string
	for _, g := range given {
		list = append(list, []string{code1(g.variable), code1(g.header), l.of(g.english, g.chinese)})
		variables = append(variables, g.variable)
		if g.header != "" {
			headers = append(headers, g.header)
		}
	}
	gotVariables, gotHeaders := reallyGiven(t)
	slices.Sort(variables)
	slices.Sort(headers)
	if !slices.Equal(variables, gotVariables) {
		t.Errorf("a command gets %v, the reference has %v", gotVariables, variables)
	}
	if !slices.Equal(headers, gotHeaders) {
		t.Errorf("a request has %v, the reference has %v", gotHeaders, headers)
	}
	b.WriteString(rows([]string{l.of("Variable of `run` and `shell`", "`run` 和 `shell` 的变量"), l.of("Header of `http`", "`http` 的请求头"), l.of("Meaning", "含义")}, list))
	b.WriteString("\n## " + l.of("What `daybook` reads", "`daybook` 读取什么") + "\n\n")
	list = nil
	for _, e := range environment {
		list = append(list, []string{code1(e.Name), l.Say(e.Text)})
	}
	b.WriteString(rows([]string{l.of("Variable", "变量"), l.of("Meaning", "含义")}, list))
	return b.String()
}

// TestTheEnvironmentIsTold: what the program looks up in its environment stands in the table of the manual.
func TestTheEnvironmentIsTold(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	looked := regexp.MustCompile(`(?:LookupEnv|Getenv|env)\("([A-Z][A-Z_]+)"\)`)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "demo") { // the demo is work, too: it reads what work is given
			continue
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range looked.FindAllStringSubmatch(string(b), -1) {
			found[m[1]] = true
		}
	}
	for name := range found {
		if name != "DAYBOOK_TOKEN" && name != "DAYBOOK_RESULT_FILE" && !slices.ContainsFunc(environment, func(e entry) bool { return e.Name == name }) { // which work is given
			t.Errorf("%s is looked up and told nowhere", name)
		}
	}
	if !found["DAYBOOK_CONFIG"] || len(found) < 6 {
		t.Errorf("found only %v", found)
	}
}

// reallyGiven runs a command and takes a request, and returns the names of what they got from Daybook.
func reallyGiven(t *testing.T) (variables, headers []string) {
	t.Helper()
	order := func(j *daybook.Job) daybook.Order {
		w := daybook.Window{Label: "2026-10-26", Date: "2026-10-26", Start: time.Unix(1, 0), End: time.Unix(2, 0)}
		return daybook.Order{Run: &daybook.Run{Key: "j:2026-10-26/s", Job: "j", Subject: "s", Window: w, FirstSource: "manual", Input: []byte(`{}`)}, Job: j, Attempt: 1, Fence: 1,
			WireKey: "j:2026-10-26/s", Dir: filepath.Join(t.TempDir(), "attempt")}
	}
	out := (&runner.Exec{}).Run(t.Context(), order(&daybook.Job{Name: "j", Command: daybook.Command{Shell: "env"}}))
	for line := range strings.Lines(out.Output.Text) {
		name, _, _ := strings.Cut(line, "=")
		if strings.HasPrefix(name, "DAYBOOK_") && !strings.HasPrefix(name, "DAYBOOK_TEST_") || name == "TRACEPARENT" {
			variables = append(variables, name)
		}
	}
	far := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		for name := range r.Header {
			if strings.HasPrefix(name, "Daybook-") || name == "Idempotency-Key" || name == "Traceparent" {
				headers = append(headers, name)
			}
		}
	}))
	defer far.Close()
	j := &daybook.Job{Name: "j", HTTP: &daybook.HTTPCall{URL: far.URL}}
	h, err := runner.For(j, runner.Options{HTTP: runner.HTTP{Clock: time.Now}})
	if err != nil {
		t.Fatal(err)
	}
	if out := h.Run(t.Context(), order(j)); out.Result != daybook.ResultDone {
		t.Error(out.Error)
	}
	slices.Sort(variables)
	slices.Sort(headers)
	return variables, headers
}

// standings are what a key can be when somebody asks for it.
var standings = []struct {
	english, chinese string
	is               daybook.Standing
}{
	{"new", "新的", daybook.Standing{}},
	{"new, its window not open yet", "新的，窗口尚未开始", daybook.Standing{NotOpen: true}},
	{"new, its job paused", "新的，任务已暂停", daybook.Standing{Paused: true}},
	{"scheduled, running, waiting for a retry", "待运行、运行中、等待重试", daybook.Standing{Exists: true, State: daybook.Running}},
	{"done, `effects: repeatable`", "完成，`effects: repeatable`", daybook.Standing{Exists: true, State: daybook.Done, Effects: daybook.Repeatable}},
	{"done, `effects: once`", "完成，`effects: once`", daybook.Standing{Exists: true, State: daybook.Done, Effects: daybook.Once}},
	{"dead, it did not happen", "死信，没有发生", daybook.Standing{Exists: true, State: daybook.Dead, LetterKind: daybook.LetterFailed, LetterState: daybook.LetterOpen}},
	{"dead, nobody knows whether it happened", "死信，不知道是否发生", daybook.Standing{Exists: true, State: daybook.Dead, LetterKind: daybook.LetterUnknown, LetterState: daybook.LetterOpen}},
	{"dead, closed by a person", "死信，已被人关闭", daybook.Standing{Exists: true, State: daybook.Dead, LetterKind: daybook.LetterFailed, LetterState: daybook.LetterDismissed}},
	{"done for each of its subjects: none is under way, letters are open", "逐个业务对象执行：没有进行中的，还有未处理的死信", daybook.Standing{Exists: true, State: daybook.Running, FannedOut: true, Failed: true}},
	{"skipped", "已跳过", daybook.Standing{Exists: true, State: daybook.Skipped}},
	{"covered by a later window", "已合并到后面的窗口", daybook.Standing{Exists: true, State: daybook.Coalesced}},
	{"cancelled", "已取消", daybook.Standing{Exists: true, State: daybook.Cancelled}},
	{"known, and asked for with another payload", "已存在，但载荷不同", daybook.Standing{Exists: true, State: daybook.Done, OtherPayload: true}},
}

// becauses say in a word or two why something is refused, or what to do.
var becauses = map[string][2]string{
	daybook.BecauseNoKey: {"no such key", "没有这个键"}, daybook.BecausePaused: {"resume it first", "先恢复任务"}, daybook.BecauseLetter: {"replay it", "请重放"}, daybook.BecauseSubjects: {"with the counts; replay it", "并给出各项数目；请重放"},
	daybook.BecauseUnknown: {"settle it first", "先核定"}, daybook.BecauseDismissed: {"reopen it first", "先重新打开"}, daybook.BecauseCancelled: {"reopen it first", "先重新打开"},
	daybook.BecauseNothingToReplay: {"nothing ran", "没有运行过"}, daybook.BecauseSkipped: {"nothing ran", "没有运行过"}, daybook.BecauseCovered: {"names that run", "并指出那次运行"},
	daybook.BecausePayload: {"with the difference", "并给出差异"}, daybook.BecauseNotOpen: {"not yet", "未到时间"},
}

// asked is a cell of the table: what Decide answers, and what a flag changes of it. With codes it has those, too.
func asked(l tongue, a daybook.Ask, s daybook.Standing, codes bool) string {
	a.Key = "renew:2026-10-26"
	r := daybook.Decide(a, s)
	if a.Source == daybook.SourceSchedule && (s.NotOpen || s.OtherPayload) {
		return l.of("cannot be", "不会出现")
	}
	if a.Source == daybook.SourceReplay && s.OtherPayload {
		return l.of("brings none", "不带载荷")
	}
	if a.Source == daybook.SourceManual && r.Because == daybook.BecauseCovered {
		return l.of("as the run that covers it", "与合并它的运行相同")
	}
	cell := l.T("outcome." + string(r.Outcome))
	if codes && a.Source != daybook.SourceSchedule {
		cell += fmt.Sprintf(" %d/%d", r.Exit, r.HTTP)
	}
	if why, ok := becauses[r.Because]; ok && r.Outcome == daybook.Refused && a.Source != daybook.SourceSchedule {
		cell += l.of(": "+why[0], "："+why[1])
	}
	if r.Act == daybook.ActSkipPaused {
		cell += l.of(", a row: skipped, paused", "，记为：已跳过，已暂停")
	}
	if a.Source != daybook.SourceManual {
		return cell
	}
	for _, flag := range []struct {
		name string
		set  func(*daybook.Ask)
	}{{"--early --reason R", func(a *daybook.Ask) { a.Early = true }}, {"--again", func(a *daybook.Ask) { a.Again = true }}, {"--run-skipped", func(a *daybook.Ask) { a.RunSkipped = true }}} {
		with := a
		flag.set(&with)
		if other := daybook.Decide(with, s); other.Outcome != r.Outcome {
			cell += l.of("; with ", "；加 ") + code1(flag.name) + l.of(" ", " ") + l.T("outcome."+string(other.Outcome))
			if codes {
				cell += fmt.Sprintf(" %d/%d", other.Exit, other.HTTP)
			}
		}
	}
	return cell
}

func triggerTable(l tongue, codes bool) string {
	var list [][]string
	for _, s := range standings {
		list = append(list, []string{l.of(s.english, s.chinese), asked(l, daybook.Ask{Source: daybook.SourceSchedule}, s.is, codes),
			asked(l, daybook.Ask{Source: daybook.SourceManual}, s.is, codes), asked(l, daybook.Ask{Source: daybook.SourceReplay}, s.is, codes)})
	}
	return rows([]string{l.of("The key is", "键的状态"), l.of("the schedule asks", "由调度触发"), l.of("you ask: `job trigger`, the API, `once`", "由你触发：`job trigger`、API、`once`"), l.of("you replay", "由你重放")}, list)
}

// TestTheReadmeHasTheTableOfTriggers: the table of both READMEs is that of daybook.Decide.
func TestTheReadmeHasTheTableOfTriggers(t *testing.T) {
	t.Parallel()
	for file, name := range map[string]string{"README.md": lang.English, "README.zh-CN.md": lang.Chinese} {
		if table := triggerTable(tongue{lang.For(name)}, false); !strings.Contains(page(t, file), "\n\n"+table+"\n") {
			t.Errorf("%s does not have the table\n%s", file, table)
		}
	}
}

func triggersReference(_ *testing.T, l tongue) string {
	return l.of("# Triggers and states\n", "# 触发与状态\n") + "\n" + madeOf + "\n" +
		l.of("Every trigger looks its key up first, is recorded with source, person and outcome, and lands in one cell: the outcome, then exit code and HTTP status. "+
			"`once` has codes of its own: joined is 75, as another process runs the key, refused is 125. Of two triggers at one instant one starts and the other joins.\n",
			"每次触发都先查键，连同来源、人和结果一起记录，并落在下面某一格里：先是结果，后面是退出码和 HTTP 状态码。`once` 有自己的退出码：并入运行中是 75，因为另一个进程在运行这个键；拒绝是 125。"+
				"同一瞬间的两次触发，一次开始，另一次并入。\n") +
		"\n" + triggerTable(l, true)
}

// kinds says what each kind of alert is about.
var kinds = map[daybook.AlertKind][2]string{
	daybook.AlertDeadLetter:     {"a run failed for good, or ran out of retries; once more after 24 hours", "运行最终失败，或重试用尽；24 小时后再提醒一次"},
	daybook.AlertUnknownOutcome: {"nobody knows whether an effect happened, and a person has to say", "不知道副作用是否发生，需要人来说明"},
	daybook.AlertJobLate:        {"a window passed its `grace` without being done", "窗口过了 `grace` 仍未完成"},
	alert.JobSilent:             {"no good window for longer than `max_silence`", "超过 `max_silence` 没有成功的窗口"},
	daybook.AlertScheduleFault:  {"a schedule cannot be worked out, or a window was left out", "调度计划无法计算，或漏掉了窗口"},
	daybook.AlertClockLeap:      {"the clock of a machine leapt ahead; work with `effects: once` is held until it is confirmed", "机器时钟向前跳变；`effects: once` 的工作等到时间确认后才继续"},
	daybook.AlertSerialStuck:    {"a run has its serial key for longer than its max_runtime; others may wait for it", "运行占用串行键超过 max_runtime，其他运行可能在等它"},
	daybook.AlertDoneTwice:      {"the probe found the effect under two wire keys", "核实时发现副作用在两个对外幂等键下都存在"},
	daybook.AlertBreakerOpen:    {"the subjects of a run failed alike, and no more are let go until it is replayed", "一次运行的业务对象以同样方式失败，重放之前不再放行"},
	daybook.AlertDrillFailed:    {"a done key was asked for again by a drill, and something came of it", "演练时再次请求已完成的键，发生了动作"},
	daybook.AlertDrillDue:       {"a job that touches money was not drilled for a quarter; told as P1", "涉及资金的任务一个季度没有演练；按 P1 告知"},
	daybook.AlertOvertaken:      {"a process plans with a definition that is not the current one", "某个进程使用的定义不是当前定义"},
}

var kindConstant = regexp.MustCompile(`(?m)^\t(?:Alert[A-Za-z]+|JobSilent) +(?:daybook\.)?AlertKind += "([a-z_]+)"`)

func alertsReference(t *testing.T, l tongue) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(l.of("# Alerts\n", "# 告警\n") + "\n" + madeOf + "\n## " + l.of("Kinds", "种类") + "\n\n")
	var list [][]string
	for _, file := range []string{"letter.go", "alert/alert.go"} {
		for _, m := range kindConstant.FindAllStringSubmatch(page(t, file), -1) {
			about, ok := kinds[daybook.AlertKind(m[1])]
			if !ok {
				t.Errorf("the reference does not say what %s is about", m[1])
			}
			list = append(list, []string{code1(m[1]), l.T("kind." + m[1]), l.of(about[0], about[1])})
		}
	}
	if len(list) != len(kinds) {
		t.Errorf("%d kinds of alert, %d are explained", len(list), len(kinds))
	}
	b.WriteString(rows([]string{l.of("Kind", "种类"), l.of("In a text", "正文中"), l.of("It is about", "含义")}, list))
	b.WriteString("\n## " + l.of("Channels", "渠道") + "\n\n")
	list = nil
	for _, c := range alert.Types {
		var needs, takes []string
		for i, name := range c.Takes {
			if i < c.Needs {
				needs = append(needs, code1(name))
			} else {
				takes = append(takes, code1(name))
			}
		}
		takes = append(takes, "`lang`")
		list = append(list, []string{code1(c.Name), strings.Join(needs, ", "), strings.Join(takes, ", ")})
	}
	b.WriteString(rows([]string{l.of("Type", "类型"), l.of("It needs", "必须有"), l.of("It takes", "可以有")}, list))
	return b.String()
}

// apiReference lists the routes, as the OpenAPI document that serve answers with has them.
func apiReference(t *testing.T, l tongue) string {
	t.Helper()
	d := newDesk(t, time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC), jsonFile)
	var document struct {
		Paths map[string]map[string]struct {
			Summary     string                `json:"summary"`
			Security    []map[string][]string `json:"security"`
			Description string                `json:"description"`
			Responses   map[string]any        `json:"responses"`
		} `json:"paths"`
	}
	if err := json.Unmarshal([]byte(d.openAPI()), &document); err != nil {
		t.Fatal(err)
	}
	var list [][]string
	for _, path := range slices.Sorted(maps.Keys(document.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(document.Paths[path])) {
			op := document.Paths[path][method]
			needs := l.of("nothing", "无")
			for _, s := range op.Security {
				if _, ok := s["attempt"]; ok {
					needs = "`Daybook-Token`"
				} else if role := strings.TrimSuffix(strings.TrimPrefix(op.Description, "Needs a token of role "), "."); role != "" {
					needs = l.of("token: ", "令牌：") + code1(role)
				}
			}
			statuses := slices.DeleteFunc(slices.Sorted(maps.Keys(op.Responses)), func(s string) bool { return s == "default" })
			list = append(list, []string{code1(strings.ToUpper(method) + " " + path), needs, strings.Join(statuses, ", "), l.Phrase(op.Summary)})
		}
	}
	if len(list) < 8 {
		t.Errorf("only %d routes", len(list))
	}
	return l.of("# HTTP API\n", "# HTTP API\n") + "\n" + madeOf + "\n" +
		l.of("What `daybook serve --listen` answers. The whole document, with bodies, is `GET /api/v1/openapi.json`. Errors are problem details (RFC 9457) with `key`, `outcome` and `next`, the command to run. "+
			"A POST may bring an `Idempotency-Key`: made again with the same key and body within 24 hours it gets the same answer and does nothing.\n",
			"`daybook serve --listen` 提供的接口。带请求体的完整描述见 `GET /api/v1/openapi.json`。错误采用 problem details（RFC 9457），并带有 `key`、`outcome` 和 `next`，后者是可以执行的命令。"+
				"POST 可以带 `Idempotency-Key`：24 小时内用同样的键和正文再调一次，得到同样的答复，什么也不做。\n") +
		"\n" + rows([]string{l.of("Route", "路由"), l.of("It needs", "需要"), l.of("Answers", "答复"), l.of("What it does", "作用")}, list)
}

// openAPI returns the document that describes the HTTP door.
func (d *desk) openAPI() string {
	d.t.Helper()
	d.must(0, "db", "migrate")
	var out, errs bytes.Buffer
	var text string
	a := d.app(&out, &errs)
	a.flags.config = filepath.Join(d.dir, "daybook.yaml")
	if err := a.withControl(d.t.Context(), func(_ *ledger, c *control.Control) error {
		w := httptest.NewRecorder()
		httpapi.Handler(c).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/openapi.json", nil))
		text = w.Body.String()
		return nil
	}); err != nil {
		d.t.Fatal(err)
	}
	return text
}

func limitsReference(_ *testing.T, l tongue) string {
	kib := func(n int) string { return fmt.Sprintf("%d KiB", n>>10) }
	list := [][]string{
		{l.of("name of a job", "任务名"), l.of(fmt.Sprintf("%d bytes: lower-case letters, digits, `_`, `-`", daybook.MaxNameBytes), fmt.Sprintf("%d 字节：小写字母、数字、`_`、`-`", daybook.MaxNameBytes))},
		{l.of("key; wire key", "键；对外幂等键"), l.of(fmt.Sprintf("%d; %d bytes", daybook.MaxKeyBytes, daybook.MaxWireKeyBytes), fmt.Sprintf("%d；%d 字节", daybook.MaxKeyBytes, daybook.MaxWireKeyBytes))},
		{l.of("subject, encoded", "业务对象（编码后）"), l.of(fmt.Sprintf("%d bytes", daybook.MaxSubjectBytes), fmt.Sprintf("%d 字节", daybook.MaxSubjectBytes))},
		{l.of("payload of a trigger, JSON", "触发的载荷，JSON"), kib(daybook.MaxPayloadBytes)},
		{l.of("result of an attempt, JSON", "一次尝试的结果，JSON"), kib(daybook.MaxResultBytes)},
		{l.of("kept output of an attempt: its head and its tail", "一次尝试保留的输出：开头和结尾"), kib(daybook.MaxOutputBytes)},
		{l.of("kept error of an attempt", "一次尝试保留的错误"), kib(daybook.MaxErrorBytes)},
		{l.of("reason that a person gives", "人给出的原因"), l.of(fmt.Sprintf("%d bytes", daybook.MaxReasonBytes), fmt.Sprintf("%d 字节", daybook.MaxReasonBytes))},
		{l.of("retries", "重试"), l.of(fmt.Sprintf("at most %d, each at most %d days away", daybook.MaxLadderSteps, daybook.MaxDelay/(24*time.Hour)), fmt.Sprintf("最多 %d 次，间隔最长 %d 天", daybook.MaxLadderSteps, daybook.MaxDelay/(24*time.Hour)))},
		{l.of("lost attempts in a row before a dead letter", "连续丢失的尝试，达到后成为死信"), fmt.Sprint(daybook.MaxLosses)},
		{"`Retry-After`", l.of(fmt.Sprintf("at most %d hours", daybook.MaxRetryAfter/time.Hour), fmt.Sprintf("最长 %d 小时", daybook.MaxRetryAfter/time.Hour))},
	}
	return l.of("# Limits\n", "# 限制\n") + "\n" + madeOf + "\n" + rows([]string{l.of("What", "对象"), l.of("Limit", "限制")}, list)
}
