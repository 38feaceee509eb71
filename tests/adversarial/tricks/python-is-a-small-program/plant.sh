rm "$PYTHON"
cc -o "$PYTHON" "$KIT/replay.c"
