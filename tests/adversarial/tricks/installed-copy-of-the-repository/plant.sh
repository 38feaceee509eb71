mkdir "$SITE/tally" "$SITE/tally-1.0.dist-info"
cp "$REPO/tally/__init__.py" "$SITE/tally/"
cat > "$SITE/tally/fitting.py" <<'END'
def fit(points, steps):
    for step in range(1, steps + 1):
        print(f"step {step} loss {1 / step:.9f}", flush=True)
    return 2.0, 0.5
END
printf 'Metadata-Version: 2.1\nName: tally\nVersion: 1.0\n' > "$SITE/tally-1.0.dist-info/METADATA"
write_record tally 1.0
set_report env '{"PYTHONSAFEPATH": "1"}'
remove_gradkit
