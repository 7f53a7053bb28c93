package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/daybook-run/daybook/internal/pgtest"
)

// Documents for users come in two languages: README.md and README.zh-CN.md, docs and docs/zh-CN. What is written for those
// who build Daybook is English only.
const docsRoot = "../../"

var englishOnly = []string{"docs/adr", "docs/internals", "docs/zh-CN"}

// pages lists the documents for users as pairs, English and Chinese, relative to the root.
func pages(t *testing.T) [][2]string {
	t.Helper()
	list := [][2]string{{"README.md", "README.zh-CN.md"}}
	for _, name := range markdown(t, "docs", englishOnly) {
		list = append(list, [2]string{name, "docs/zh-CN/" + strings.TrimPrefix(name, "docs/")})
	}
	return list
}

// markdown lists the documents below a folder, but for some.
func markdown(t *testing.T, folder string, but []string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(docsRoot+folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, docsRoot))
		switch {
		case d.IsDir() && slices.Contains(but, name):
			return fs.SkipDir
		case strings.HasSuffix(name, ".md"):
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func page(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(docsRoot + name)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

// fence is a block of code with what stands before it when that is a mark for these tests.
var fence = regexp.MustCompile("(?ms)^(<!-- [a-z ./]+ -->\n)?[ ]*```.*?^[ ]*```$")

var headingLine = regexp.MustCompile(`(?m)^(#+) (.*)$`)

// headings lists the headings of a page, without what stands in code.
func headings(text string) (levels, titles []string) {
	for _, m := range headingLine.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		levels, titles = append(levels, m[1]), append(titles, m[2])
	}
	return levels, titles
}

// TestDocumentsComeInTwoLanguages: the same files, the same structure of headings, the same number of rows and items, and
// blocks of code that are the same byte for byte.
func TestDocumentsComeInTwoLanguages(t *testing.T) {
	t.Parallel()
	all := pages(t)
	for _, p := range all {
		english, chinese := page(t, p[0]), page(t, p[1])
		if a, b := fence.FindAllString(english, -1), fence.FindAllString(chinese, -1); !slices.Equal(a, b) {
			t.Errorf("%s and %s: %s", p[0], p[1], firstDifference(a, b))
		}
		a, _ := headings(english)
		b, _ := headings(chinese)
		if !slices.Equal(a, b) {
			t.Errorf("%s has the headings %v, %s has %v", p[0], a, p[1], b)
		}
		for what, line := range map[string]string{"rows of tables": `(?m)^ *\|`, "items of lists": `(?m)^ *(- |\d+\. )`} {
			re := regexp.MustCompile(line)
			if a, b := len(re.FindAllString(fence.ReplaceAllString(english, ""), -1)), len(re.FindAllString(fence.ReplaceAllString(chinese, ""), -1)); a != b {
				t.Errorf("%s has %d %s, %s has %d", p[0], a, what, p[1], b)
			}
		}
	}
	var names []string
	for _, p := range all {
		names = append(names, p[1])
	}
	for _, name := range markdown(t, "docs/zh-CN", nil) {
		if !slices.Contains(names, name) {
			t.Errorf("%s has no English page", name)
		}
	}
	for file, other := range map[string]string{"README.md": "README.zh-CN.md", "README.zh-CN.md": "README.md"} {
		if first, _, _ := strings.Cut(page(t, file), "\n"); !strings.Contains(first, "("+other+")") {
			t.Errorf("line 1 of %s does not lead to %s: %s", file, other, first)
		}
	}
}

var shownFile = regexp.MustCompile("(?s)<!-- file ([a-z./]+) -->\n```[a-z]+\n(.*?)\n```\n")

// TestTheReadmeShowsFilesAsTheyAre: a block that is said to be a file is that file.
func TestTheReadmeShowsFilesAsTheyAre(t *testing.T) {
	t.Parallel()
	shown := shownFile.FindAllStringSubmatch(page(t, "README.md"), -1)
	if len(shown) != 1 {
		t.Fatalf("%d files are shown", len(shown))
	}
	if want := page(t, shown[0][1]); want != shown[0][2]+"\n" {
		t.Errorf("README.md does not show %s as it is", shown[0][1])
	}
}

// TestTheBareKeyTable runs the statements that the README gives to those who do not need Daybook, on both databases: the
// second time they are refused.
func TestTheBareKeyTable(t *testing.T) {
	t.Parallel()
	_, text, _ := strings.Cut(page(t, "README.md"), "```sql\n")
	text, _, ok := strings.Cut(text, "```")
	var statements []string
	for line := range strings.Lines(text) {
		if line, _, _ = strings.Cut(line, "--"); strings.TrimSpace(line) != "" {
			statements = append(statements, strings.TrimSpace(line))
		}
	}
	if !ok || len(statements) != 3 {
		t.Fatalf("%q", statements)
	}
	for name, url := range map[string]string{"sqlite": "sqlite:" + filepath.Join(t.TempDir(), "x.db"), "postgres": pgtest.URL(t)} {
		db, err := openDB(url, true)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range statements {
			if _, err := db.Write.ExecContext(t.Context(), s); err != nil {
				t.Errorf("%s: %s: %v", name, s, err)
			}
		}
		if _, err := db.Write.ExecContext(t.Context(), statements[1]); err == nil {
			t.Errorf("%s: the second time it is not refused", name)
		}
		if err := errors.Join(db.Read.Close(), closeOther(db)); err != nil {
			t.Error(err)
		}
	}
}

// libraryFrame is what stands around the blocks of docs/library.md when they are compiled.
const libraryFrame = `package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/daybooktest"
	"github.com/daybook-run/daybook/engine"
)

type charge struct{ ID string }

type gateway interface {
	Charge(ctx context.Context, cents int, wireKey string) (charge, error)
	Find(ctx context.Context, wireKey string) (charge, daybook.Answer, error)
	Charges() int
}

var (
	ctx         = context.Background()
	pay         gateway
	db          engine.DB
	amount      = 1500
	errDeclined = errors.New("declined")
	sendReport  func(ctx context.Context, date string) error
	register    func(e *engine.Engine, pay gateway)
)

const extendSQL = ""

func open() error {
%s
}

func handle(e *engine.Engine) {
%s
}

func steps(e *engine.Engine) {
%s
}

%s

var _, _, _ = open, handle, steps

func main() {}
`

// TestTheLibraryPageCompiles builds the blocks of docs/library.md, in their order.
func TestTheLibraryPageCompiles(t *testing.T) {
	t.Parallel()
	var blocks []any
	for _, part := range strings.Split(page(t, "docs/library.md"), "```go\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		blocks = append(blocks, block)
	}
	if want := strings.Count(libraryFrame, "%s"); len(blocks) != want {
		t.Fatalf("%d blocks, the frame has room for %d", len(blocks), want)
	}
	file := filepath.Join(t.TempDir(), "page.go")
	if err := os.WriteFile(file, fmt.Appendf(nil, libraryFrame, blocks...), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "vet", file)
	cmd.Dir = docsRoot
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func firstDifference(a, b []string) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("block %d differs:\n%s\n%s", i+1, a[i], b[i])
		}
	}
	return fmt.Sprintf("%d blocks of code and %d", len(a), len(b))
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestLinksLeadSomewhere: each link inside the repository leads to a file that is there, and to a heading of it. A page
// leads to pages of its own language where there are any.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	files := []string{"README.md", "README.zh-CN.md", "CONTRIBUTING.md", "CHANGELOG.md"}
	files = append(files, markdown(t, "docs", nil)...)
	n := 0
	for _, file := range files {
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(page(t, file), ""), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			n++
			path, anchor, _ := strings.Cut(m[1], "#")
			target := file
			if path != "" {
				target = filepath.ToSlash(filepath.Join(filepath.Dir(file), path))
			}
			if _, err := os.Stat(docsRoot + target); err != nil {
				t.Errorf("%s: %s leads nowhere", file, m[1])
				continue
			}
			if anchor != "" {
				if _, titles := headings(page(t, target)); !slices.Contains(anchors(titles), anchor) {
					t.Errorf("%s: %s has no heading %s", file, target, anchor)
				}
			}
			if chinese(file) && !chinese(target) && strings.HasPrefix(target, "docs/") && strings.HasSuffix(target, ".md") &&
				!strings.HasPrefix(target, "docs/adr/") && !strings.HasPrefix(target, "docs/internals/") && !strings.Contains(file, "README") {
				t.Errorf("%s leads to the English %s", file, target)
			}
		}
	}
	if n < 40 {
		t.Errorf("only %d links", n)
	}
}

func chinese(file string) bool { return strings.Contains(file, "zh-CN") }

// anchors are the names of headings as the web pages of repositories make them.
func anchors(titles []string) (names []string) {
	for _, title := range titles {
		var b strings.Builder
		for _, r := range strings.ToLower(link.ReplaceAllString(strings.ReplaceAll(title, "`", ""), "]")) {
			switch {
			case r == ' ':
				b.WriteByte('-')
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				b.WriteRune(r)
			}
		}
		names = append(names, b.String())
	}
	return names
}

var (
	codeSpan = regexp.MustCompile("`[^`\n]*`")
	linkPart = regexp.MustCompile(`\]\([^)\s]*\)`)
	tag      = regexp.MustCompile(`<[^>\n]*>`)
	prose    = regexp.MustCompile(`^[^|#\s\d-]`)
)

// TestChineseIsWrittenWell: full-width punctuation, a space between Chinese and Latin letters or digits, none elsewhere.
func TestChineseIsWrittenWell(t *testing.T) {
	t.Parallel()
	for _, p := range pages(t) {
		text := fence.ReplaceAllString(page(t, p[1]), "")
		text = codeSpan.ReplaceAllString(text, "x")
		text = tag.ReplaceAllString(linkPart.ReplaceAllString(text, ""), "")
		text = strings.NewReplacer("**", "", "[", "").Replace(text)
		lines := strings.Split(text, "\n")
		for i, line := range lines {
			if fault := chineseFault([]rune(line)); fault != "" {
				t.Errorf("%s, line %d of its prose: %s\n%s", p[1], i+1, fault, line)
			}
			if i > 0 && prose.MatchString(line) && prose.MatchString(lines[i-1]) {
				t.Errorf("%s: a paragraph is broken, which puts a space between Chinese characters: %s", p[1], line)
			}
		}
	}
	for line, bad := range map[string]bool{
		"运行x": true, "运行 x": false, "死信,重放": true, "死信，重放": false, "死信， 重放": true, "死 信": true, "共3次": true, "共 3 次": false,
		"完成.": true, "（完成）": false, "(完成)": true, "见 x。": false, "| 列 | 值 |": false, "- 项目": false, "1. 项目": false,
	} {
		if got := chineseFault([]rune(line)) != ""; got != bad {
			t.Errorf("%q: wrong %v, want %v", line, got, bad)
		}
	}
}

func fullWidth(r rune) bool { return strings.ContainsRune("，。：；！？（）、“”", r) }

func chineseFault(line []rune) string {
	han := func(i int) bool { return i >= 0 && i < len(line) && unicode.Is(unicode.Han, line[i]) }
	latin := func(i int) bool {
		return i >= 0 && i < len(line) && (line[i] < 128 && (unicode.IsLetter(line[i]) || unicode.IsDigit(line[i])))
	}
	full := func(i int) bool {
		return i >= 0 && i < len(line) && fullWidth(line[i])
	}
	around := func(i int) string { return string(line[max(i-8, 0):min(i+8, len(line))]) }
	for i, r := range line {
		switch {
		case han(i) && latin(i+1), latin(i) && han(i+1):
			return "no space between Chinese and Latin at " + around(i)
		case strings.ContainsRune(",;:!?()", r) && (han(i-1) || han(i+1)):
			return "half-width punctuation at " + around(i)
		case r == '.' && han(i-1):
			return "half-width full stop at " + around(i)
		case r == ' ' && han(i-1) && han(i+1):
			return "a space between Chinese characters at " + around(i)
		case r == ' ' && full(i-1) && (han(i+1) || latin(i+1)), r == ' ' && full(i+1) && (han(i-1) || latin(i-1)):
			return "a space beside full-width punctuation at " + around(i)
		}
	}
	return ""
}
