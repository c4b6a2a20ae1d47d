package hooklog

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
)

// StateDir returns the folder of what ahp keeps: .local/state/ahp in home. If home is ""
// it is that of the account in the user database, whatever HOME and XDG_STATE_HOME
// say: a repository could set those. The folder need not be there.
func StateDir(home string) (string, error) {
	if home == "" {
		account, err := user.LookupId(strconv.Itoa(os.Getuid()))
		if err != nil {
			return "", fmt.Errorf("the home folder of this account is unknown, so the place of the state of ahp is too: %w", err)
		}
		home = account.HomeDir
	}
	if !filepath.IsAbs(home) {
		return "", fmt.Errorf("the home folder %q isn't an absolute path, so the place of the state of ahp is unknown", home)
	}
	return filepath.Join(home, ".local", "state", "ahp"), nil
}

// LogDir returns the folder of the decision log within the state folder.
func LogDir(state string) string { return filepath.Join(state, "log") }
