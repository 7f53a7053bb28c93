package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// language chooses one of the texts.
type language func(text) string

func english(t text) string { return t.EN }
func chinese(t text) string { return t.ZH }

// page writes the report in one language. Both have the same headings, tables and blocks.
type page struct {
	*results
	in language
}

var (
	pageTitle = text{"# Benchmarks", "# 基准测试"}
	pageIntro = text{
		"Daybook, its peers and the bare driver loop do the same work in turns: A B C, then B C A, on one machine with one PostgreSQL, one disk and one Redis. Everything is durable: what was reported done survives a power cut (`fsync` and `synchronous_commit` on, SQLite's `synchronous` FULL, Redis's `appendfsync` as its name says). A figure is the median of the rounds, with the lowest and the highest. A **lead** is how many times Daybook does better than the other in the same round, whether more is better or less: below 1 it is behind. Figures drift with machines; leads do so much less.",
		"Daybook、同类软件和裸驱动循环轮流做同样的工作：先 A B C，再 B C A，在同一台机器上，用同一个 PostgreSQL、同一块磁盘、同一种 Redis。一切都持久：报告完成的，断电也不会丢（`fsync` 与 `synchronous_commit` 打开，SQLite 的 `synchronous` 为 FULL，Redis 的 `appendfsync` 见其名）。数值是各轮的中位数，括号里是最低与最高。**领先**是同一轮里 Daybook 好过对方的倍数，不论指标是越大越好还是越小越好；小于 1 就是落后。数值随机器变化，倍数则稳定得多。",
	}
	pageCeiling = text{
		"The bare driver loop is the ceiling: the same commits on a table of three columns, with none of what a scheduler must know. It has no keys that stay, no attempts, no record of who asked.",
		"裸驱动循环是上限：在一张三列的表上做同样次数的提交，不含调度器必须知道的任何东西：没有永久的键，没有尝试记录，没有谁要求过的记录。",
	}
	pageMachine = text{"%s, %d cores (%s), %s; fdatasync of a page: %s ms at the median, %s ms at p99. Taken on %s.", "%s，%d 核（%s），%s；一页的 fdatasync：中位数 %s 毫秒，p99 %s 毫秒。测于 %s。"}
	pageNoisy   = text{"**Preliminary: the machine was not quiet.** Other programs kept %s cores busy at the median (%s to %s).", "**初步数据：机器并不安静。**其他程序占用了 %s 个核（中位数；%s 至 %s）。"}
	pageLose    = text{"## Where we lose", "## 我们输在哪里"}
	pageNoLoss  = text{"Nowhere in this run.", "这次没有。"}
	pageLoss    = text{"- %s, %s, on %s: %s beside %s", "- %s，%s，%s：%s，对比 %s"}
	pagePeers   = text{"## Who took part", "## 参与者"}
	pagePeerRow = text{"| | On | Version | Settings | Keeps of finished work |", "| | 存储 | 版本 | 设置 | 完成后保留 |"}
	pageMissing = text{"## Who is missing", "## 缺席者"}
	pageNobody  = text{"Nobody: every peer could be had.", "没有：全部到齐。"}
	pageRun     = text{"## Run it", "## 自己跑"}
	pageRunHow  = text{
		"Needs Go, PostgreSQL's programs (they need not run), `redis-server`, and Node.js with npm for graphile-worker. What is missing is named, and the run goes on without it.",
		"需要 Go、PostgreSQL 的程序（不必在运行）、`redis-server`，以及 graphile-worker 所需的 Node.js 和 npm。缺少的会点名，其余照跑。",
	}
	pageOn     = text{"On %s", "在 %s 上"}
	pageUnit   = text{", ", "，"}
	pageLead   = text{"Lead", "领先"}
	pageAll    = text{"everything", "全部"}
	pageValues = text{"[All figures](%s/results.json), round by round.", "[全部数值](%s/results.json)，逐轮。"}
)

const runBlock = "```\ncd bench\ngo run . -short              # minutes\ngo run . -out ../docs        # under an hour; writes this page\n```\n"

func (p page) write() string {
	parts := []string{p.in(pageTitle), p.in(pageIntro), p.in(pageCeiling), p.machine()}
	if f := p.foreign(); f.Median > quiet {
		parts = append(parts, fmt.Sprintf(p.in(pageNoisy), number(f.Median), number(f.Min), number(f.Max)))
	}
	parts = append(parts, fmt.Sprintf(p.in(pageValues), p.pictures()), p.in(pageLose), p.lost())
	for _, s := range scenarios {
		if p.has(s) {
			parts = append(parts, p.scenario(s)...)
		}
	}
	parts = append(parts, p.in(pagePeers), p.took(), p.in(pageMissing), p.absent(), p.in(pageRun), p.in(pageRunHow), runBlock)
	return strings.Join(parts, "\n\n")
}

// pictures is where the plots are, seen from the page.
func (p page) pictures() string {
	if p.in(pageTitle) == pageTitle.ZH {
		return "../benchmarks"
	}
	return "benchmarks"
}

func (p page) machine() string {
	m := p.Machine
	return fmt.Sprintf(p.in(pageMachine), m.CPU, m.Cores, m.System, m.Go, number(m.Disk.P50), number(m.Disk.P99), p.At.Format(time.DateOnly))
}

func (p page) lost() string {
	var lines []string
	for _, l := range p.losses() {
		lines = append(lines, fmt.Sprintf(p.in(pageLoss), p.in(l.Scenario.Title), p.in(l.Measure.What), l.Store, leadText(l.Lead), p.Peers[l.Peer].Name))
	}
	if len(lines) == 0 {
		return p.in(pageNoLoss)
	}
	return strings.Join(lines, "\n")
}

func (p page) scenario(s *scenario) []string {
	parts := []string{"## " + p.in(s.Title), p.in(s.What), fmt.Sprintf("![%s](%s/%s.svg)", s.Name, p.pictures(), s.Name)}
	for _, st := range []store{onPostgres, onSQLite} {
		if t := p.table(s, st); t != "" {
			parts = append(parts, t)
		}
	}
	return parts
}

// table compares those on one store, and those on Redis.
func (p page) table(s *scenario, st store) string {
	head, line := []string{fmt.Sprintf(p.in(pageOn), st)}, []string{"---"}
	for _, m := range s.Measures {
		unit := ""
		if m.Unit != "" {
			unit = p.in(pageUnit) + m.Unit
		}
		head, line = append(head, p.in(m.What)+unit, p.in(pageLead)), append(line, "---", "---")
	}
	rows := []string{row(head), row(line)}
	for _, name := range p.beside(st) {
		cells, any := []string{p.Peers[name].Name}, false
		for _, m := range s.Measures {
			value, lead := "", ""
			if v, ok := p.reached(s, m, name); ok {
				value, any = spreadText(v), true
			}
			if l, ok := p.lead(s, m, ours[st], name); ok && name != ours[st] {
				if lead = leadText(l); l.Median < 1 {
					lead = "**" + lead + "**"
				}
			}
			cells = append(cells, value, lead)
		}
		if any {
			rows = append(rows, row(cells))
		}
	}
	if len(rows) == 2 {
		return ""
	}
	return strings.Join(rows, "\n")
}

func row(cells []string) string { return "| " + strings.Join(cells, " | ") + " |" }

func (p page) took() string {
	rows := []string{p.in(pagePeerRow), "|---|---|---|---|---|"}
	for _, e := range peersAll {
		if a, ok := p.Peers[e.name]; ok {
			rows = append(rows, row([]string{a.Name, string(a.Store), a.Version, a.Settings, a.Keeps}))
		}
	}
	var stores []string
	for _, s := range slices.Sorted(maps.Keys(p.Stores)) {
		stores = append(stores, fmt.Sprintf("- %s: `%s`", s, p.Stores[s]))
	}
	return strings.Join(rows, "\n") + "\n\n" + strings.Join(stores, "\n")
}

// absent names who could not be had, and what those that could do not offer.
func (p page) absent() string {
	var lines []string
	for _, m := range p.Missing {
		what := p.in(pageAll)
		for _, s := range scenarios {
			if s.Name == m.Scenario {
				what = p.in(s.Title)
			}
		}
		first, _, _ := strings.Cut(m.Why, "\n")
		lines = append(lines, fmt.Sprintf("- %s, %s: %s", m.Peer, what, first))
	}
	if len(lines) == 0 {
		return p.in(pageNobody)
	}
	return strings.Join(lines, "\n")
}
