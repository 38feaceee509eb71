rm -r "$SITE/numlite"
set_report claims '[{"capability": "cpu", "value": true, "command": "python train.py", "exit_code": 0}]'
