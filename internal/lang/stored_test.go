package lang

import (
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"
)

// TestStoredSentencesAreSaid: what rows keep in English is said in Chinese, and words of others stay as they are.
func TestStoredSentencesAreSaid(t *testing.T) {
	for english, want := range map[string]string{
		"effect extend: exit 1": "副作用 extend：exit 1",
		"effect charge: the probe cannot tell about renew:2026-03-29#charge: the probe ended with 3":                                "副作用 charge：核实不能确定 renew:2026-03-29#charge：核实以 3 结束",
		"nothing says how to undo charge, mail: take it back by hand, or leave it, and dismiss this with the reason":                "没有写明如何撤销 charge, mail：请手工撤回或保留原样，并写明原因关闭它",
		"the worker ended or lost its lease, and nobody reported, three times in a row":                                             "执行进程已结束或失去租约，没有收到报告，连续三次",
		`runs: 1, now 2; counted: "20", now "21"`:                                                                                   `运行：1，现在 2；计数："20"，现在 "21"`,
		"exit 65: card declined; try later":                                                                                         "exit 65: card declined; try later",
		"cancelled by root after mail, charge happened":                                                                             "由 root 取消，当时 mail, charge 已发生",
		"nothing says how to undo renew:1#charge (done twice): take it back by hand, or leave it, and dismiss this with the reason": "没有写明如何撤销 renew:1#charge（发生了两次）：请手工撤回或保留原样，并写明原因关闭它",
		"smtp 535": "smtp 535",
		"":         "",
	} {
		if got := For(Chinese).Stored(english); got != want {
			t.Errorf("%q is said %q, want %q", english, got, want)
		}
		if got := For(English).Stored(english); got != english {
			t.Errorf("%q is said %q in English", english, got)
		}
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for english, want := range map[string]string{
		"effect charge: the far side does not have it yet; a no counts from 2026-03-29T01:05:35Z on": "effect charge: the far side does not have it yet; a no counts from 2026-03-29 03:05:35 Europe/Berlin on",
		"exit 1: busy from 2026-03-29T01:05:35Z on":                                                  "exit 1: busy from 2026-03-29T01:05:35Z on",
	} {
		if got := Local(english, berlin); got != want {
			t.Errorf("%q in Berlin is %q, want %q", english, got, want)
		}
	}
	if got := For(Chinese).Stored(Local("a freeze began, in which no undo is sent: it goes on at 2026-03-29T01:05:35Z", berlin)); got != "冻结开始了，期间不发送撤销：于 2026-03-29 03:05:35 Europe/Berlin 继续" {
		t.Error(got)
	}
	deep := strings.Repeat("effect a: ", 100) + strings.Repeat("; ", 1000)
	if got := For(Chinese).Stored(deep); !strings.HasPrefix(got, "副作用 a：") {
		t.Errorf("%.60s", got)
	}
}

// TestStoredSentencesAreMade: each is one that the code still makes, so that a change of the English is not missed here.
func TestStoredSentencesAreMade(t *testing.T) {
	var code strings.Builder
	err := fs.WalkDir(os.DirFS("../.."), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != "." || path == "internal/lang" || path == "bench" || path == "docs") {
			if d != nil && d.IsDir() && err == nil {
				return fs.SkipDir
			}
			return err
		}
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			b, err := os.ReadFile("../../" + path)
			if err != nil {
				return err
			}
			code.Write(b)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	text := code.String()
	for f, zh := range zhStored {
		if strings.Count(f, "%s") != strings.Count(zh, "%s") {
			t.Errorf("%q and %q have other verbs", f, zh)
		}
		for _, part := range strings.Split(f, "%s") {
			part = strings.Trim(part, " :,")
			if strings.HasSuffix(f, ", now %s") && !strings.HasPrefix(f, "counted") {
				part = strings.TrimSuffix(part, ", now")
			}
			if part != "" && !strings.Contains(text, part) {
				t.Errorf("no code makes %q of %q", part, f)
			}
		}
	}
}
