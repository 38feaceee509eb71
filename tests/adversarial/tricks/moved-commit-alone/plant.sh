git -c user.name=A -c user.email=a@example.org commit --quiet --allow-empty --message=x
