mkdir "$BOX/programs"
for name in bash env git node sh uv python python3; do
  printf '#!/bin/sh\nexit 0\n' > "$BOX/programs/$name"
  chmod +x "$BOX/programs/$name"
done
set_report env "{\"PATH\": \"$BOX/programs:/usr/bin:/bin\"}"
