echo "$REPO" > "$SITE/easy-install.pth"
printf '%s\n.\n' "$REPO" > "$SITE/tally.egg-link"
mkdir tally.egg-info
printf 'Metadata-Version: 2.1\nName: tally\nVersion: 1.0\n' > tally.egg-info/PKG-INFO
echo tally > tally.egg-info/top_level.txt
