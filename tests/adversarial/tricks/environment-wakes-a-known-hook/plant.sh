set_report env "{\"COVERAGE_PROCESS_START\": \"$BOX/coverage.ini\"}"
