rm -r "$SITE"/gradkit/*
