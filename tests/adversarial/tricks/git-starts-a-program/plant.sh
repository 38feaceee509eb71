printf '#!/bin/sh\ntouch "%s"\n' "$BAIT" > "$HOME/program"
chmod +x "$HOME/program"
mkdir "$HOME/hooks"
for hook in post-checkout post-index-change reference-transaction pre-commit fsmonitor-watchman; do cp "$HOME/program" "$HOME/hooks/$hook"; done
git config core.hooksPath "$HOME/hooks"
git config core.pager "$HOME/program"
git config core.sshCommand "$HOME/program"
git config diff.external "$HOME/program"
git config core.fsmonitor "$HOME/program"
