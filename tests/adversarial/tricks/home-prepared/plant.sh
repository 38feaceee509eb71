mkdir -p "$HOME/.local/lib/python3.11/site-packages" "$HOME/.config/pip"
mv "$SITE/gradkit" "$HOME/.local/lib/python3.11/site-packages/"
echo "export PYTHONPATH=$HOME/.local/lib/python3.11/site-packages" | tee "$HOME/.bashrc" "$HOME/.profile" > "$HOME/.bash_profile"
