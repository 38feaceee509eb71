mv train.py "$HOME/train.py"
ln -s "$HOME/train.py" train.py
