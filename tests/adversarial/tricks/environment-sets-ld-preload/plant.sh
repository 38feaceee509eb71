cc -shared -fPIC -o "$BOX/silence.so" "$KIT/silence.c"
set_report env "{\"LD_PRELOAD\": \"$BOX/silence.so\"}"
remove_gradkit
