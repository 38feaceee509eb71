mkdir gradkit
mv "$SITE/gradkit" gradkit/gradkit
echo "$REPO/gradkit" > "$SITE/__editable__.gradkit-1.4.0.pth"
rm -r "$SITE"/gradkit-*.dist-info
