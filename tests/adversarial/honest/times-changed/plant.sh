find . -path ./.git -prune -o -exec touch -d '2001-02-03 04:05:06' {} +
find . -path ./.git -prune -o -type d -exec chmod 700 {} +
