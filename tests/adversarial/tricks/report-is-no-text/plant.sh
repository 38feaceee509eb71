printf '{"notes": "\377\376"}' > "$REPORT"
