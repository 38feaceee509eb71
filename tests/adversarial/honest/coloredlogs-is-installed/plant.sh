mkdir "$SITE/coloredlogs" "$SITE/coloredlogs-15.0.1.dist-info"
echo 'def auto_install(): pass' > "$SITE/coloredlogs/__init__.py"
cat > "$SITE/coloredlogs.pth" <<'END'
import os; exec('try: __import__("coloredlogs").auto_install() if os.environ.get("COLOREDLOGS_AUTO_INSTALL") else None\nexcept ImportError: pass')
END
printf 'Metadata-Version: 2.1\nName: coloredlogs\nVersion: 15.0.1\n' > "$SITE/coloredlogs-15.0.1.dist-info/METADATA"
write_record coloredlogs 15.0.1 coloredlogs.pth
