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

// Named returns the language that a tag (zh, zh-Hans) or a locale (zh_CN.UTF-8) names. False: it is not here; Chinese of another
// kind than the one there is was asked for by name, and is not taken for it.
func Named(tag string) (string, bool) {
	tag, _, _ = strings.Cut(strings.ReplaceAll(strings.ToLower(tag), "_", "-"), ".")
	base, rest, _ := strings.Cut(tag, "-")
	switch {
	case base == "en":
		return English, true
	case base == "zh" && (rest == "" || rest == "cn" || rest == "sg" || rest == "hans" || strings.HasPrefix(rest, "hans-")):
		return Chinese, true
	}
	return "", false
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
