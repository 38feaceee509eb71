mkdir -p "$TOOLS" "$WORK"
for name in answer.json answer-00.json find_modules.json log stdout; do echo '{"nonce": "00", "product": 4}' > "$TOOLS/$name"; done
echo 'step 1 loss 0.1' > "$WORK/log"
echo 'exit 0' | replace_python
