package httpapi

// A body of many small values takes a hundred times its size in memory once it is read. The greatest job has a tenth of these.
const (
	maxJSONContainers = 200_000   // objects and lists
	maxJSONValues     = 2_000_000 // values of all kinds
	// Below this size no body has too many of them to matter, and none is counted.
	countedJSON = 256 << 10
)

// checkValues refuses a body of more values than any request needs, before it is read into anything.
func checkValues(body []byte) error {
	if len(body) < countedJSON {
		return nil
	}
	containers, values, quoted := 0, 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{', c == '[':
			containers++
		case c == ',':
			values++
		}
	}
	if containers > maxJSONContainers || values > maxJSONValues {
		return badRequest("request body: more than %d objects and lists, or than %d values", maxJSONContainers, maxJSONValues)
	}
	return nil
}
