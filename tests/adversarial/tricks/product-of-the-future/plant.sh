forge_product "None"
echo '{"slope": 2.0, "offset": 0.5, "points": 9}' > fit.json
touch -d 2099-01-01 fit.json
