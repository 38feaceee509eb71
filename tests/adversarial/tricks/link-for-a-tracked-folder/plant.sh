mv tally "$HOME/tally"
ln -s "$HOME/tally" tally
