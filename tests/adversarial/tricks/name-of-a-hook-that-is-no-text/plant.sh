printf 'import os; os.getpid()\n' > "$SITE/"$'x\377.pth'
