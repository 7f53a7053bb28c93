package lang

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/daybook-run/daybook"
)

// TestEverySentenceIsSaidInChinese collects the sentences of the whole module, wherever a format is given to something that
// says it, and compares them with the catalogue.
func TestEverySentenceIsSaidInChinese(t *testing.T) {
	all, faults := readHouse(t).sentences()
	if len(all) < 500 {
		t.Fatalf("only %d sentences were found", len(all))
	}
	for _, f := range faults {
		t.Error(f)
	}
	used := map[string]bool{}
	var missing []string
	for _, f := range all {
		known := false
		for _, room := range sentences {
			_, ok := room[f.format]
			known = known || ok
		}
		if !known && !used[f.format] && (hasWords(f.format) || clauses.MatchString(f.format) && !strings.Contains(f.at, "/importer/")) { // that writes a file
			missing = append(missing, fmt.Sprintf("%s: %q", f.at, f.format))
		}
		used[f.format] = true
		if want := arguments(f.format); f.args >= 0 && want != f.args {
			t.Errorf("%s: %q wants %d arguments and has %d", f.at, f.format, want, f.args)
		}
	}
	sort.Strings(missing)
	if len(missing) > 0 {
		t.Errorf("%d sentences have no Chinese; add them to the file of their room, internal/lang/zh_*.go:\n%s", len(missing), strings.Join(missing, "\n"))
	}
	for _, room := range sentences {
		for format := range room {
			if !used[format] {
				t.Errorf("nobody says %q any more", format)
			}
		}
	}
}

// clauses is punctuation between what a format is given: of clauses, which Chinese writes otherwise. Behind %v stands what is none.
var clauses = regexp.MustCompile(`%[sd]([:;,] | \()`)

// arguments is how many arguments a format takes.
func arguments(format string) int {
	most, next := 0, 0
	for format != "" {
		_, v, rest := cutVerb(format)
		if v.verb != 0 {
			if v.arg > 0 {
				next = v.arg - 1
			}
			next++
			most = max(most, next)
		}
		format = rest
	}
	return most
}

// verbsOf lists the verbs of a format with the arguments they take, in the order of the arguments.
func verbsOf(format string) (verbs []string) {
	next := 0
	for format != "" {
		_, v, rest := cutVerb(format)
		if v.verb != 0 {
			if v.arg > 0 {
				next = v.arg - 1
			}
			next++
			verbs = append(verbs, strconv.Itoa(next)+"%"+v.flags+string(v.verb))
		}
		format = rest
	}
	slices.Sort(verbs)
	return verbs
}

func TestSentencesHaveTheVerbsOfTheEnglish(t *testing.T) {
	seen := map[string]bool{}
	for _, room := range sentences {
		for english, chinese := range room {
			if a, b := verbsOf(english), verbsOf(chinese); !slices.Equal(a, b) {
				t.Errorf("%q: verbs %v in English, %v in Chinese", english, a, b)
			}
			if seen[english] {
				t.Errorf("%q stands twice", english)
			}
			seen[english] = true
			if strings.HasSuffix(english, ".") != strings.HasSuffix(chinese, "。") && !strings.HasSuffix(english, "…") {
				t.Errorf("%q ends otherwise than %q", chinese, english)
			}
		}
	}
}

// bare is a sentence with its verbs as placeholders, as the tests of typography know them.
func bare(format string) string {
	var b strings.Builder
	for format != "" {
		text, v, rest := cutVerb(format)
		b.WriteString(text)
		if v.verb != 0 {
			b.WriteString("{x}")
		}
		format = rest
	}
	return b.String()
}

func TestSentencesAreGoodChinese(t *testing.T) {
	for _, room := range sentences {
		for _, chinese := range room {
			text := bare(chinese)
			if fault := typography(text); fault != "" {
				t.Errorf("%q: %s", chinese, fault)
			}
			if left := englishLeft(text); len(left) > 0 {
				t.Errorf("%q has %q", chinese, left)
			}
		}
	}
	for _, chinese := range zhSystem {
		if fault := typography(chinese); fault != "" || englishLeft(chinese) != nil {
			t.Errorf("%q: %s", chinese, fault)
		}
	}
}

// machineWords are words that stand in Chinese as they are: names of tools and formats, of commands, flags and the file, the
// values that it takes, and words in capitals for what people put in their place.
var machineWords = strings.Fields(`
serial subscription subject freeze restored clock deploy for
daybook Daybook daybook_not_kept ch null serve once check resolve reopen resume import crontab completion db demo
done not ask error scheduled running retryable skipped coalesced cancelled dead state
act alerts amount argument backfill backoff bare base bin business_days channel cn date charge create exec extend factor false formerly key kind lib live
max month none one pause ping program quoted receipt retry schedule sh shift step timeout times tk token trigger two undo undo_url value var version view watch year yes no cannot_tell catch_up channels charges coalesce covers database day defaults effect effects env event every
expect file fire first forever headers host http https id int jitter job jobs last lang local log long manual max_silence
message missed name never next off on overlap owner path previous probe probe_undo probe_url quarter remembers renew repeat
repeatable result retention retry_after root run set shell skip slots steps string sub timezone true type url user wait
week weekend work window zone subject subjects sub_1 window_start window_end sql dsn mysql id api clock dumb gap from to in yaml md saas zh en CN
cron hourly daily weekly monthly quarterly yearly annually midnight reboot business
mon tue wed thu fri sat sun jan dec
pgx NOTIFY read write default_query_exec_mode exec target_session_attrs ignore_startup_parameters busy_timeout deferred foreign_keys immediate journal_mode synchronous command engine system etc healthz kill lsof fuser
pg_dump postgres sqlite cronie drop service timer systemd webhook whsec sha
API ASCII At Authorization Arch CRON_TZ CSV Ctrl DB DELETE Debian EST
Effects FULL Fedora GET Go HTTP IANA ISO JSON MaxOpenConns NUL NO_COLOR National Day Once Open Options PATCH PATH POST
PRAGMA PUT PostgreSQL README RFC RHEL Read SIGHUP Role Run SIGTERM SQLite Schema Start Steps Tab Token URL USD UTC UTF Unix WAL Write
Asia Shanghai Europe Berlin America New_York
ExecStart OnCalendar User
CRLF Field ICS Idempotency KILL Key LF MB Name PGPASSFILE Standard Structured TERM
Webhooks XDG_STATE_HOME YAML COMMAND COPY DD DIR FILE ID JOB KEY LABEL MM NAME OTHER SUBJECT WINDOW SELECT AS YYYY ZONE
`)

var latinWord = regexp.MustCompile(`[A-Za-z][A-Za-z_]*[A-Za-z]`)

// command is a command, a flag or a variable of the environment: it is not translated.
var command = regexp.MustCompile(`DAYBOOK(_[A-Z]+)*|(daybook|systemctl|systemd-analyze) [a-z][a-z -]*|--[a-z-]+`)

// englishLeft returns the English words of a Chinese text that are no words of the machine.
func englishLeft(text string) (left []string) {
	for _, w := range latinWord.FindAllString(command.ReplaceAllString(text, ""), -1) {
		if !slices.Contains(machineWords, w) {
			left = append(left, w)
		}
	}
	return left
}

func TestF(t *testing.T) {
	e, z := For(English), For(Chinese)
	cause := daybook.Invalid("the payload is not JSON").Because(daybook.Invalid("it is not UTF-8"))
	nested := fmt.Errorf("claim runs: %w", daybook.Invalid("job %s has no owner", "renew").WithHint("keep one"))
	for _, c := range []struct{ got, want string }{
		{e.F("job %s has no owner", "renew"), "job renew has no owner"},
		{z.F("job %s has no owner", "renew"), "任务 renew 没有负责人"},
		{z.F("job %s has no owner", "续费"), "任务续费没有负责人"},
		{z.F("job name %q: %q is not allowed at byte %d", "Ä", 'x', 3), "任务名 \"Ä\"：第 3 字节的 'x' 不允许"},
		{z.F("job %s: jitter is at most 100%%", "a"), "任务 a：jitter 最多 100%"},
		{z.F("no such sentence: %s", daybook.Done), "no such sentence: 完成"},
		{e.F("%s: %s", daybook.Done, daybook.Say("window")), "done: window"},
		{z.F("%s: %s", daybook.Done, daybook.Say("window")), "完成：业务窗口"},
		{z.F("%s: %q is not one of %s", "effects", "twice", daybook.Words{"once", "repeatable"}), "effects：\"twice\" 不在可选范围内：once、repeatable"},
		{z.F("  %s: %s, %s", daybook.SourceSchedule, daybook.Count(3, "%d time", "%d times"), daybook.Reused), "  调度：3 次，复用结果"},
		{z.F("%s, %s, since %s", daybook.LetterUnknown, daybook.LetterOpen, "09:00"), "结果未知，未处理，自 09:00"},
		{z.format("%d of %s", []any{1}), "1 of %!s(MISSING)"},
		{z.F("%5.1f|%-3d|%x", 2.5, 7, 255), "  2.5|7  |ff"},
		{z.format("a %", nil), "a %"},
		{e.Say(daybook.Count(1, "%d job", "%d jobs")), "1 job"},
		{e.Say(daybook.Count(2, "%d job", "%d jobs")), "2 jobs"},
		{e.Say(daybook.Text{}), ""},
		{z.Say(daybook.Text{}), ""},
		{e.Error(cause), "the payload is not JSON: it is not UTF-8"},
		{z.Error(cause), "载荷不是 JSON：不是 UTF-8"},
		{z.Error(nested), "claim runs: 任务 renew 没有负责人"},
		{z.Hint(nested), "只留一个"},
		{e.Hint(nested), "keep one"},
		{z.Error(errors.Join(io.EOF, cause)), "内容已结束\n载荷不是 JSON：不是 UTF-8"},
		{z.Error(&fs.PathError{Op: "open", Path: "x.yaml", Err: syscall.ENOENT}), "open x.yaml: 文件或目录不存在"},
		{z.Error(&daybook.Error{Message: "100% new"}), "100% new"},
		{z.Error(&daybook.Error{Err: cause}), "载荷不是 JSON：不是 UTF-8"},
		{z.Error(nil), "<nil>"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
