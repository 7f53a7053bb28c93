package lang

import (
	"sort"
	"strconv"
	"strings"
)

// matchBytes bounds what is read of one preference: it may come from a header.
const matchBytes = 512

// Match returns the language for a list of preferences, the strongest first: ?lang, a cookie, a setting, Accept-Language;
// or --lang, DAYBOOK_LANG, LC_ALL, LANG. Each may be a tag (zh, zh-Hans-SG), a locale (zh_CN.UTF-8) or a list with weights
// (fr, zh;q=0.8). The first that names a language that is here decides; else it is English. All of Chinese is answered in
// the one kind there is.
func Match(preferred ...string) string {
	for _, p := range preferred {
		if len(p) > matchBytes {
			p = p[:matchBytes]
		}
		for _, tag := range weighted(p) {
			base, _, _ := strings.Cut(strings.NewReplacer("_", "-", ".", "-", "@", "-").Replace(strings.ToLower(tag)), "-")
			switch base {
			case "en":
				return English
			case "zh", "cmn":
				return Chinese
			}
		}
	}
	return English
}

// weighted returns the tags of a list, the heaviest first; those with weight 0 are not wanted.
func weighted(list string) []string {
	type entry struct {
		tag    string
		weight float64
	}
	var entries []entry
	for part := range strings.SplitSeq(list, ",") {
		tag, params, _ := strings.Cut(part, ";")
		e := entry{tag: strings.TrimSpace(tag), weight: 1}
		if q, ok := strings.CutPrefix(strings.ReplaceAll(params, " ", ""), "q="); ok {
			w, err := strconv.ParseFloat(q, 64)
			if err != nil {
				continue
			}
			e.weight = w
		}
		if e.weight > 0 {
			entries = append(entries, e)
		}
	}
	sort.SliceStable(entries, func(i, j int) bool { return entries[i].weight > entries[j].weight })
	tags := make([]string, len(entries))
	for i, e := range entries {
		tags[i] = e.tag
	}
	return tags
}
