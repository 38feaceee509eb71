cat > "$BOX/e.c" <<'END'
#include <unistd.h>
__attribute__((constructor)) static void go(void) { write(2, "loaded\n", 7); }
END
cc -shared -fPIC -o "$BOX/e.so" "$BOX/e.c"
cat > "$BOX/o.cnf" <<END
openssl_conf = init
[init]
providers = own
[own]
mine = of_mine
[of_mine]
module = $BOX/e.so
activate = 1
END
set_report env "{\"OPENSSL_CONF\": \"$BOX/o.cnf\"}"
