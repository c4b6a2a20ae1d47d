package hookstate

// Project returns the project that was set for the session, "" for none: an agent that
// walks out of its project's folder stays in its session.
func (x *Session) Project() (project string, err error) {
	err = x.change(func(d *document) bool {
		project = d.Project
		return false
	})
	return project, err
}

// SetProject has the session stay in a project, the first that is set.
func (x *Session) SetProject(project string) error {
	return x.change(func(d *document) bool {
		if d.Project != "" {
			return false
		}
		d.Project = project
		return true
	})
}
