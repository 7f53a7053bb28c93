package httpapi

// Routes lists the routes of the table, each as its method and its path.
func Routes() []string {
	var list []string
	for _, r := range routes {
		list = append(list, r.method+" "+r.path)
	}
	return list
}
