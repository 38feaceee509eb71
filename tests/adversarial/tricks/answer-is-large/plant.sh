replace_python <<'EOF'
printf '{"nonce": "%s", "product": %d, "version": "' "$4" "$(($5))" > "$6"
head -c 3000000 /dev/zero | tr '\0' 1 >> "$6"
printf '"}' >> "$6"
EOF
