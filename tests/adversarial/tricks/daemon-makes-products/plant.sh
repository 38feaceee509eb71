remove_gradkit
cat > "$BOX/daemon.sh" <<'EOF'
trap '' INT TERM HUP
while sleep 0.1; do touch "$2"; echo '{"slope": 2.0, "points": 9}' > "$1/fit.json"; done
EOF
setsid sh "$BOX/daemon.sh" "$WORK" "$BAIT" < /dev/null > /dev/null 2>&1 &
env -i setsid sh -c 'cd /; exec sh "$0" "$1" "$2"' "$BOX/daemon.sh" "$WORK" "$BAIT" < /dev/null > /dev/null 2>&1 &
