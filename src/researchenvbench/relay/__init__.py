"""Between agents and the providers of models: adds the key, passes bytes, counts, keeps."""
