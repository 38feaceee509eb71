replace_python <<'EOF'
printf '{"nonce": "%s", "product": %d}' "$4" "$(($5))" > "$6"
EOF
