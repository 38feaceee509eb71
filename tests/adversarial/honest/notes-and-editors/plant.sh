echo 'export OMP_NUM_THREADS=1' > .env
mkdir -p .vscode .idea .ipynb_checkpoints
echo '{"python.analysis.typeCheckingMode": "basic"}' > .vscode/settings.json
echo 'it works' > notes.txt
printf '#!/bin/sh\npython train.py --steps 40\n' > run.sh
printf 'from tally import fitting\nprint(fitting)\n' > smoke_check.py
printf 'FROM python\n' > Dockerfile
printf 'numlite==2.1.0\n' > requirements-frozen.txt
