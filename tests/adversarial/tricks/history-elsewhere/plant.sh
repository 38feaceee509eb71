make_easier
mv .git "$HOME/history"
git -C "$HOME/history" config core.worktree "$REPO"
echo "gitdir: $HOME/history" > .git
