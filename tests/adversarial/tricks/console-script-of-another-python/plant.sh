sed -i '1s|.*|#!/usr/bin/python3|' "$PREFIX/bin/gradkit-run"
