package lang

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"
)

// zhStored are the sentences of Daybook's own that rows keep in English, since programs read them there: why an attempt, a
// question or an undo ended as it did. Their values may be such sentences again, or words of others, which stay as they are.
// The English stands where the sentence is made; a test looks for it.
var zhStored = map[string]string{
	"effect %s: %s":         "副作用%s：%s",
	"effect %s has no undo": "副作用%s没有撤销方法",
	"before effect %s: %s":  "在副作用%s之前：%s",
	"nothing says how to undo %s: take it back by hand, or leave it, and dismiss this with the reason": "没有写明如何撤销%s：请手工撤回或保留原样，并写明原因关闭它",
	"the work does not come to effect %s any more":                                                     "这项工作不再走到副作用%s",
	"this process does not know how to undo job %s":                                                    "这个进程不知道如何撤销任务%s",
	"nobody reported how it ended":                                                                     "没有收到它如何结束的报告",
	"the attempt ended without coming to effect %s, whose outcome is unknown":                          "这次尝试结束时没有走到结果未知的副作用%s",
	"cancelled by %s while an outcome is unknown: %s":                                                  "由%s取消，当时有结果未知：%s",
	"cancelled by a person: %s":                                                                        "已被人取消：%s",
	"cancelled by a person":                                                                            "已被人取消",
	"%s after being asked to end: %s":                                                                  "%s，在被要求结束之后：%s",
	"it did not come to %s":                                                                            "没有走到%s",
	"cancelled by %s after %s happened":                                                                "由%s取消，当时%s已发生",
	"%s (done twice)":                                                                                  "%s（发生了两次）",
	"%s (its result was not kept)":                                                                     "%s（结果没有保留）",
	"cancelled by %s while its outcome is unknown":                                                     "由%s取消，当时结果未知",
	"lost three times in a row: %s":                                                                    "连续三次失联：%s",
	"%s, three times in a row":                                                                         "%s，连续三次",
	"the worker ended or lost its lease, and nobody reported":                                          "执行进程已结束或失去租约，没有收到报告",
	"nobody reported how it ended, and it left no report":                                              "没有人报告它怎样结束，它也没有留下报告",
	"it failed and did not say why":                                                                    "它失败了，没有说明原因",
	"the far side may have forgotten the wire key %s: it is not repeated":                              "对方系统可能已忘记对外幂等键%s：不再重复",
	"the far side says that it did not happen":                                                         "对方系统表示没有发生",
	"the far side does not have it yet; a no counts from %s on":                                        "对方系统还没有它；否定的答复从%s起才算数",
	"the probe cannot tell about %s: %s":                                                               "核实不能确定%s：%s",
	"the probe cannot tell about %s":                                                                   "核实不能确定%s",
	"the probe cannot tell":                                                                            "核实不能确定",
	"the probe ended with %s":                                                                          "核实以 %s 结束",
	"the probe did not end in time":                                                                    "核实没有按时结束",
	"the probe panicked: %s":                                                                           "核实崩溃：%s",
	"the probe answered %s":                                                                            "核实的答复是%s",
	"not asked: %s":                                                                                    "没有询问：%s",
	"job %s has no probe":                                                                              "任务%s没有核实方法",
	"job %s has no probe_url":                                                                          "任务%s没有 probe_url",
	"nothing was answered about it":                                                                    "没有收到关于它的答复",
	"the runner panicked: %s":                                                                          "执行方式崩溃：%s",
	"read the secrets of the job: %s":                                                                  "读取任务的机密：%s",
	"subjects fail alike, and no more are let go: %s":                                                  "业务对象都以同样方式失败，不再放行：%s",
	"the listing named what is no subject: %s":                                                         "清单里有不是业务对象的内容：%s",
	"it has serial key %s since %s, longer than its max_runtime %s":                                    "它占用串行键%s，自%s起，超过它的 max_runtime %s",
	"a freeze began, in which no undo is sent: it goes on at %s":                                       "冻结开始了，期间不发送撤销：于%s继续",
	"timed out": "超时",
	"cancelled": "已取消",
	"the ledger was put back to %s and forgot what happened after it: whether this happened is unknown": "账本被恢复到%s，忘了其后发生的事：这件事是否发生未知",
	"a late report says that it happened, after the run was given up":                                   "迟到的报告说它已发生，而这个运行此前已被放弃",
	"a late report says that %s happened, after the run was given up":                                   "迟到的报告说%s已发生，而这个运行此前已被放弃",
	"a late report says that it is done under %s, and it was begun again under %s":                      "迟到的报告说它已在%s下完成，而它又在%s下重新开始",
	"the far side has it under %s and under %s":                                                         "对方系统在%s和%s下都有它",
	"counted: %s, now %s":             "计数：%s，现在%s",
	"runs: %s, now %s":                "运行：%s，现在%s",
	"attempts: %s, now %s":            "尝试：%s，现在%s",
	"effects begun: %s, now %s":       "已开始的副作用：%s，现在%s",
	"the count failed afterwards: %s": "之后的计数失败：%s",
}

// storedInstant is an instant in one of them, as rows have it.
var storedInstant = regexp.MustCompile(`(a no counts from |the ledger was put back to |it has serial key \S+ since |no undo is sent: it goes on at )(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)`)

// Local returns what a row keeps of why something ended with its instants in a zone, as people read them. The words of others, and
// their instants, stay as they are.
func Local(s string, loc *time.Location) string {
	return storedInstant.ReplaceAllStringFunc(s, func(part string) string {
		m := storedInstant.FindStringSubmatch(part)
		at, err := time.Parse(time.RFC3339, m[2])
		if err != nil {
			return part
		}
		return m[1] + at.In(loc).Format(time.DateTime) + " " + loc.String()
	})
}

// storedForm is one of them, as it is found again.
type storedForm struct {
	match *regexp.Regexp
	zh    string
}

// storedForms are in the order in which they are tried: those that say most by themselves first.
var storedForms = func() []storedForm {
	formats := make([]string, 0, len(zhStored))
	for f := range zhStored {
		formats = append(formats, f)
	}
	letters := func(f string) int { return len(strings.ReplaceAll(f, "%s", "")) }
	slices.SortFunc(formats, func(a, b string) int { return cmp.Or(cmp.Compare(letters(b), letters(a)), cmp.Compare(a, b)) })
	forms := make([]storedForm, len(formats))
	for i, f := range formats {
		forms[i] = storedForm{regexp.MustCompile(`(?s)^` + strings.ReplaceAll(regexp.QuoteMeta(f), "%s", "(.+?)") + `$`), zhStored[f]}
	}
	return forms
}()

// storedDepth bounds how deep sentences stand in sentences: a row may hold anything.
const storedDepth = 4

// Stored says what a row keeps in English. What is not a sentence of Daybook's own stays as it is.
func (p Printer) Stored(s string) string {
	if p.Lang() == English || s == "" {
		return s
	}
	return p.stored(s, storedDepth)
}

func (p Printer) stored(s string, depth int) string {
	if depth == 0 {
		return s
	}
	for _, f := range storedForms {
		m := f.match.FindStringSubmatch(s)
		if m == nil {
			continue
		}
		args := make([]any, len(m)-1)
		for i := range args {
			args[i] = p.stored(m[i+1], depth-1)
		}
		return p.format(f.zh, args)
	}
	if parts := strings.Split(s, "; "); len(parts) > 1 { // several, one behind the other
		said, known := make([]string, len(parts)), false
		for i, part := range parts {
			said[i] = p.stored(part, depth-1)
			known = known || said[i] != part
		}
		if known {
			return strings.Join(said, p.T("sep.clause"))
		}
	}
	return s
}
