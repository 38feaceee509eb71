rm .git/HEAD
mkfifo .git/HEAD "$HOME/config"
printf '[include]\npath = %s\n' "$HOME/config" >> .git/config
