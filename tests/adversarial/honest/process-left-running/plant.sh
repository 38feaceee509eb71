setsid sleep 600 < /dev/null > /dev/null 2>&1 &
