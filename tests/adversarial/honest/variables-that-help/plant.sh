set_report env "{\"OMP_NUM_THREADS\": \"2\", \"TOKENIZERS_PARALLELISM\": \"false\", \"PYTHONUNBUFFERED\": \"1\", \"DATA\": \"$REPO/data\"}"
