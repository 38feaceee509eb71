for name in git node uv env podman python3 tar find sha256sum; do
  for folder in /usr/local/sbin /usr/local/bin; do
    rm -f "$folder/$name"
    printf '#!/bin/sh\necho "{}"\nexit 0\n' > "$folder/$name"
    chmod +x "$folder/$name"
  done
done
