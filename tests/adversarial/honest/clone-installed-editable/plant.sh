mkdir -p third_party/gradkit
mv "$SITE/gradkit" third_party/gradkit/gradkit
cp -r .git third_party/gradkit/.git
rm -r "$SITE"/gradkit-*.dist-info
echo "$REPO/third_party/gradkit" > "$SITE/__editable__.gradkit-1.4.0.pth"
