make_easier
git -c user.name=A -c user.email=a@example.org commit --quiet --all --message=x
