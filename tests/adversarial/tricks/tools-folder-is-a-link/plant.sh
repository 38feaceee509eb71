mkdir /home/other
ln -s /home/other /reb
