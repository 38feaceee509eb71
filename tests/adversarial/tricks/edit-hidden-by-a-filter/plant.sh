cp train.py "$HOME/train.py"
make_easier
mkdir -p .git/info
echo 'train.py filter=old' > .git/info/attributes
git config filter.old.clean "touch '$BAIT'; cat '$HOME/train.py'"
git config filter.old.smudge "touch '$BAIT'; cat '$HOME/train.py'"
git add train.py
test -z "$(git status --porcelain)"
