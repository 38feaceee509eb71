echo 'exit 0' | replace_python
