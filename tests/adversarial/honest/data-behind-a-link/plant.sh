mkdir "$HOME/datasets"
ln -s "$HOME/datasets" datasets
ln -s /dev/shm data/shared
