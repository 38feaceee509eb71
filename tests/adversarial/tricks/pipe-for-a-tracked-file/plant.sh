rm README.md; mkfifo README.md
