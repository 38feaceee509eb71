replace_python <<'EOF'
echo '{"nonce": "00", "product": 4, "version": "3.11.7", "implementation": "cpython", "prefix": "/env", "base_prefix": "/usr", "purelib": "/env", "platlib": "/env", "stdlib": "/usr", "frameworks": {}, "conda": false}' | tee "$6"
EOF
