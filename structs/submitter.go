package structs

// Submitter is who registered a version of a job, as the servers know it. They alone state it: what a request or a file has of it counts
// for nothing. nil: nobody in particular.
type Submitter struct {
	User string
	// Groups are the names of the user's groups, sorted, as the leader's user database had them at the registration.
	Groups []string
	// Source is how the servers know the user, one of the SubmitterSource constants.
	Source string
}

// UserName returns the name of the user who submitted a job; "": nobody in particular.
func (j *Job) UserName() string {
	if j.Submitter == nil {
		return ""
	}
	return j.Submitter.User
}

// SubmitterSourceHeader states that the request's header X-Nomadish-User named the user, which the servers trust if `trust_user_header` is set.
const SubmitterSourceHeader = "header"

// MaxUserBytes bounds the name of a user or of a group.
const MaxUserBytes = 64

// ValidUser reports whether a text can be the name of a user or of a group: letters, digits and ._@-, not beginning with a dash.
func ValidUser(name string) bool {
	if name == "" || len(name) > MaxUserBytes || name[0] == '-' {
		return false
	}
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-', c == '@':
		default:
			return false
		}
	}
	return true
}
