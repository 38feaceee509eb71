printf '{"gpu_count": 1%010000d}' 0 > "$REPORT"
