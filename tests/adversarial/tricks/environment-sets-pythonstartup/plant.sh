install_hook "$BOX/startup.py"
set_report env "{\"PYTHONSTARTUP\": \"$BOX/startup.py\", \"PYTHONINSPECT\": \"1\"}"
