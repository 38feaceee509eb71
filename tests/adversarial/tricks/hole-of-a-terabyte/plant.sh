truncate -s 1T /opt/hole
