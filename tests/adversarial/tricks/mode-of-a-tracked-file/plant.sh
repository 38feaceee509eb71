chmod +x train.py
